"""``verify``: every statement of a bundle made again from its plan and its packets, and compared.

Nothing stored is believed but the plan (``run.json``), the packets, and what the tester alone could
know. What cannot be made again is named: as a *difference* where the packets contradict what is
stored, as a *doubt* where the bundle cannot be judged whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles

from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.attestation import SigningError, opened, signed_by, statement
from bentpipe_conformance.evidence.bundle import Bundle, BundleError, case_directory
from bentpipe_conformance.evidence.files import digest, read, read_json
from bentpipe_conformance.evidence.layout import ATTESTATION, CERTIFICATE, DERIVED, REPLAY
from bentpipe_conformance.evidence.limits import bounded, size_of
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.evidence.serialization import (
    LARGEST,
    RecordError,
    decode,
    encode,
    loads,
)
from bentpipe_conformance.evidence.tool import source_digest, tool_name
from bentpipe_conformance.iut.description import bundled_iut
from bentpipe_conformance.run.completeness import lacking
from bentpipe_conformance.run.exploration import found_case, is_found
from bentpipe_conformance.run.identity import requirements_digest
from bentpipe_conformance.run.rejudge import judge_again
from bentpipe_conformance.run.seal import certificate, rendered, result_of

Told = Callable[[str, int, int], None]
"""Told which case is being judged, how many are done, and of how many."""


class UnforeseenError(BundleError):
    """A bundle broke what judges it, in a way that nobody foresaw; one sentence."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A stored statement that the packets do not give.

    Attributes:
        place: file and member.
        stored: what stands there.
        found: what plan and packets give.
    """

    place: str
    stored: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: stored {self.stored}, plan and packets give {self.found}"


@dataclass(slots=True)
class Verification:
    """What came of verifying a bundle.

    Attributes:
        differences: what the packets contradict.
        doubts: why the bundle cannot be judged whole, a sentence each.
        result: ``result.json`` as it is made now; empty when it could not be made.
        cases: how many cases were judged again.
        signed: what is known of who signed it; empty if nobody has.
        own: whether this very source made the bundle; what another one would say differs, perhaps.
    """

    differences: list[Difference] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    cases: int = 0
    signed: str = ""
    own: bool = True

    @property
    def contradicted(self) -> bool:
        """Whether the packets contradict what is stored."""
        return self.own and bool(self.differences)

    @property
    def reproduced(self) -> bool:
        """Whether the bundle is whole, and all of it was made again."""
        return not self.differences and not self.doubts


def verify(
    directory: Path, told: Told = lambda *_: None, signer: Path | None = None
) -> Verification:
    """Make everything in a bundle again, and compare, in bounded memory and time.

    With a ``signer`` (a public SSH key, or allowed signers) it has to be signed by it.

    Raises:
        SigningError: ``signer`` has no key, or signatures cannot be checked here.
        BundleError: it is no bundle, is damaged, was made by another release, or takes more than
            its size permits.
    """
    # What this takes however small the bundle is, is loaded before its memory is counted.
    load_suites(), source_digest()
    with bounded(size_of(directory)):
        try:
            return _verify(directory, told, signer)
        except (BundleError, SigningError, MemoryError):
            raise
        except Exception as error:  # the bundle is anybody's
            what = f"{type(error).__name__}: {str(error)[:120]}"
            raise UnforeseenError(f"{directory} cannot be judged: {what}.") from error


def _verify(directory: Path, told: Told, signer: Path | None) -> Verification:
    bundle = Bundle.open(directory)
    done = Verification()
    _check_tool(bundle, done)
    link = _check_plan(bundle, done)
    present = bundle.files()
    stored = _stored(bundle, done)
    if bundle.finished:
        bundle.check()
    again = []
    for number, record in enumerate(stored):
        told(record.id, number, len(stored))
        again.append(_judge(bundle, record, link, done))
    done.cases = len(again)
    if not bundle.finished:
        done.doubts.append("the run was not finished: there is no manifest; go on with --resume")
    _check_attempts(bundle, present, link)
    if "result.json" in present:
        _check_result(bundle, again, done)
    for name in DERIVED:
        if bundle.finished and name not in present:
            done.doubts.append(f"{name} is missing")
    if bundle.finished:
        _check_attestation(bundle, signer, done)
    elif signer is not None:
        done.doubts.append("it is not signed: the run was not finished")
    if not bundle.run.campaign:
        done.doubts += [
            f"the run is partial: {why}" for why in lacking(bundle.run, [r.id for r in stored])
        ]
    return done


def _check_tool(bundle: Bundle, done: Verification) -> None:
    run, release, source = bundle.run, version("bentpipe"), source_digest()
    made = tool_name(run.bentpipe[:20], run.source)
    if run.bentpipe != release:
        raise BundleError(
            f"{bundle.directory} was made by {made}; this is {tool_name(release, source)}. Verify "
            f"it with bentpipe {run.bentpipe[:20]}."
        )
    if run.source != source:
        done.own = False
        done.doubts.append(
            f"it was made by {made}, and this is {tool_name(release, source)}, which may judge "
            "otherwise; use the one that made it"
        )
    if run.suite not in load_suites():
        raise BundleError(
            f"{bundle.directory} is of the suite {run.suite[:40]!r}, which is unknown."
        )
    suite = load_suites()[run.suite]
    if run.profile not in suite.profiles:
        asked, known = run.profile[:40], ", ".join(suite.profiles)
        raise BundleError(
            f"{bundle.directory} was judged by the profile {asked!r}, which this release does not "
            f"have (it has {known}); verify it with the release that made it."
        )
    if run.requirements != requirements_digest(suite):
        done.doubts.append("it was judged by requirements other than this release's")


def _check_plan(bundle: Bundle, done: Verification) -> LinkProfile:
    """Whether the plan is one that this release can have made; its link."""
    run = bundle.run
    try:
        link = decode(LinkProfile, run.link)
        if encode(link) != run.link:
            raise RecordError("a member is missing")
    except (RecordError, ValueError, TypeError) as error:
        where = bundle.directory / "run.json"
        raise BundleError(f"{where} is damaged: its link is none ({error}).") from error
    bundled = load_profiles().get(link.id)
    if bundled is not None and bundled != link:
        done.differences += _compare("run.json: link", run.link, encode(bundled))
    if run.iut.bundled:
        own = bundled_iut(run.iut.id)
        if own is None:
            done.doubts.append(f"this release has no implementation {run.iut.id[:40]!r}")
        else:
            said = {
                "name": run.iut.name, "ics": dict(run.iut.ics), "isolation": run.iut.isolation,
            }  # fmt: skip
            isolation = own.isolation.record(own.attach.kind)
            true = {"name": own.name, "ics": dict(own.ics), "isolation": isolation}
            done.differences += _compare("run.json: iut", said, true)
    if run.campaign and run.cases:
        raise BundleError(
            f"{bundle.directory / 'run.json'} plans both a campaign and cases; bentpipe plans one."
        )
    known = load_cases(run.suite)
    unknown = [name for name in run.cases if name not in known]
    if unknown or len(set(run.cases)) < len(run.cases) or not (run.cases or run.campaign):
        what = f"plans {unknown[0][:80]!r}, which is no case" if unknown else "plans no run"
        raise BundleError(f"{bundle.directory / 'run.json'} {what}.")
    return link


def _stored(bundle: Bundle, done: Verification) -> list[CaseRecord]:
    """The cases of the plan that are there; others are named."""
    planned = {case_directory(name): name for name in bundle.run.cases}
    found = [str(name) for name in bundle.exploration.get("found", ())]
    if odd := [name for name in found if not is_found(name, bundle.run.suite)]:
        where = bundle.directory / "exploration.json"
        raise BundleError(f"{where} names {odd[0][:80]!r}, which no campaign can have found.")
    planned |= {case_directory(name): name for name in found}
    for folder in sorted((bundle.directory / "cases").iterdir()):
        if folder.name not in planned:
            raise BundleError(f"{folder} is no case of the plan in run.json.")
        if not (folder / "case.json").exists():
            done.doubts.append(f"cases/{folder.name} has no case.json: it was never finished")
    records = bundle.cases()
    if lost := sorted(set(found) - {record.id for record in records}):
        raise BundleError(f"{bundle.directory} lacks {lost[0]}, which exploration.json names.")
    return records


def _judge(bundle: Bundle, record: CaseRecord, link: LinkProfile, done: Verification) -> CaseRecord:
    if is_found(record.id, bundle.run.suite):
        item = found_case(record.id, _checked_replay(bundle, record))
    else:
        item = load_cases(bundle.run.suite)[record.id]
    try:
        again = judge_again(bundle, record, item, link)
    except (BundleError, MemoryError):
        raise
    except Exception as error:  # packets that nobody sent may break any checker
        kind = type(error).__name__
        sentence = f"{record.id} cannot be judged: {kind}: {str(error)[:120]}."
        raise UnforeseenError(sentence) from error
    place = f"cases/{case_directory(record.id)}/case.json"
    done.differences += _compare(place, encode(record), encode(again))
    return again


def _checked_replay(bundle: Bundle, record: CaseRecord) -> str:
    """The replay file that was stored with a found conversation."""
    path = bundle.directory / "cases" / case_directory(record.id) / REPLAY
    octets = read(path) if path.exists() else b""
    if digest(octets) != record.lane.get("replay"):
        raise BundleError(f"{path} is not the replay file that was stored with these packets.")
    return octets.decode("utf-8", "replace")


def _check_attempts(bundle: Bundle, present: Mapping[str, Path], link: LinkProfile) -> None:
    """What was tried again has to be of the plan, from a session that there was, and no verdict.

    An attempt that shows a violation, or is no error, stands: nothing may replace it.
    """
    planned = {case_directory(name) for name in bundle.run.cases}
    for name in present:
        first, *rest = name.split("/")
        if first != "attempts":
            continue
        session, folder = rest[0], rest[1]
        known = session.isdecimal() and len(session) < 5 and int(session) <= len(bundle.sessions)
        if not known or folder not in planned:
            raise BundleError(f"{bundle.directory / name} is no attempt at a case of the plan.")
    known_cases = load_cases(bundle.run.suite)
    for where, record, envelope, captured in bundle.attempts():
        item = known_cases[record.id]
        again = judge_again(bundle, record, item, link, (envelope, captured))
        violated = any(finding.verdict is Verdict.FAIL for finding in again.findings)
        if violated or again.verdict is not Verdict.ERROR:
            raise BundleError(
                f"{where} has a verdict on the implementation ({again.verdict}), which no later "
                "attempt may replace."
            )


def _check_result(bundle: Bundle, records: list[CaseRecord], done: Verification) -> None:
    """Make the result, the JUnit file and the report again."""
    path = bundle.directory / "result.json"
    stored = read_json(path)
    ended = stored.get("finished") if isinstance(stored, dict) else None
    if not isinstance(ended, int | float) or not bundle.run.started <= ended < LARGEST:
        raise BundleError(f"{path} is damaged: it does not say when the run finished.")
    done.result = result_of(bundle, records, ended)
    done.differences += _compare("result.json", stored, json.loads(json.dumps(done.result)))
    made = rendered(bundle, done.result, records)
    if all((bundle.directory / name).exists() for name in DERIVED):
        made[CERTIFICATE] = certificate(bundle.run, done.result, bundle.contents_digest())
    for name, text in made.items():
        if name == "result.json" or not (bundle.directory / name).exists():
            continue
        octets = read(bundle.directory / name)
        if octets != text.encode("utf-8", "replace"):
            done.differences.append(_first_line(name, octets.decode("utf-8", "replace"), text))


def _check_attestation(bundle: Bundle, signer: Path | None, done: Verification) -> None:
    """Whether the signed statement says what the bundle says, and who signed it."""
    path = bundle.directory / ATTESTATION
    if not path.exists() and not path.is_symlink():
        if signer is not None:
            done.doubts.append("it is not signed: there is no attestation.json")
        return
    payload, signatures = opened(path)
    try:
        stored = loads(payload.decode("utf-8"))
    except (RecordError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is damaged: its statement is no JSON ({error}).") from error
    if done.result:
        made = statement(bundle.run, done.result, bundle.manifest_digest())
        done.differences += _compare("attestation.json", stored, json.loads(json.dumps(made)))
    if signer is None:
        done.signed = "signed by somebody: name the one you trust with --signer FILE"
    elif name := signed_by(payload, signatures, signer):
        done.signed = f"signed by {name}"
    else:
        wrong = Difference("attestation.json", "a signature", f"none of those whom {signer} names")
        done.differences.append(wrong)


def _first_line(name: str, stored: str, made: str) -> Difference:
    lines = zip(stored.splitlines(), made.splitlines(), strict=False)
    for number, (before, now) in enumerate(lines, 1):
        if before != now:
            return Difference(f"{name}, line {number}", _shown(before.strip()), _shown(now.strip()))
    return Difference(name, f"{len(stored)} characters", f"{len(made)}")


_ABSENT = object()

MOST_SHOWN = 100
"""Characters of a value that are shown."""


def _compare(place: str, stored: Any, made: Any) -> Iterator[Difference]:
    """Where two JSON documents differ."""
    if isinstance(stored, dict) and isinstance(made, dict):
        for name in sorted({**made, **stored}, key=lambda name: (name != "verdict", name)):
            yield from _compare(
                f"{place}.{name[:80]}" if "." in place or ":" in place else f"{place}: {name[:80]}",
                stored.get(name, _ABSENT), made.get(name, _ABSENT),
            )  # fmt: skip
    elif isinstance(stored, list) and isinstance(made, list) and _named(stored) and _named(made):
        before, now = ({row["id"]: row for row in rows} for rows in (stored, made))
        if len(before) < len(stored):
            yield Difference(place, "something twice", "each once")
        if list(before) != list(now) and before.keys() == now.keys():
            yield Difference(place, "another order", "the usual one")
        for name in sorted({**now, **before}):
            yield from _compare(
                f"{place}[{name[:80]}]", before.get(name, _ABSENT), now.get(name, _ABSENT)
            )
    elif isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        for number, (before, now) in enumerate(zip(stored, made, strict=True)):
            yield from _compare(f"{place}[{number}]", before, now)
    elif isinstance(stored, list) and isinstance(made, list):
        yield Difference(place, _longer(stored, made), _longer(made, stored))
    elif stored != made or isinstance(stored, bool) != isinstance(made, bool):
        yield Difference(place, _shown(stored), _shown(made))


def _named(rows: list[Any]) -> bool:
    return bool(rows) and all(
        isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows
    )


def _longer(these: list[Any], those: list[Any]) -> str:
    """A list, or how long it is and the first of its items that another one lacks."""
    if len(whole := json.dumps(these)) <= MOST_SHOWN:
        return whole
    alone = next((item for item in these if item not in those), _ABSENT)
    return f"{len(these)}" if alone is _ABSENT else f"{len(these)}, among them {_shown(alone)}"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    if isinstance(value, dict) and "verdict" in value:
        named = value.get("requirement", "") if "packets" in value else ""
        return f"{named} {value['verdict']}".strip()[:60]
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."

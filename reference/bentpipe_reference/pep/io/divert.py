"""How a kernel that routes between two interfaces leads connections to sockets of this program.

TPROXY gives what opens a connection to a listening socket, and what belongs to a socket of ours to
that, whatever its address; a rule and a route deliver both here. What has no socket is routed. The
rules belong to a running ``nft``: if this program is killed, it ends and they vanish with it, and
the route leads nowhere without their mark.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import IO, Literal

from bentpipe_reference.pep.io.network import PRIORITY, NetworkError, Run, ruled, run_ip, size_of

MARK = 0x7300
"""Of packets that are delivered here."""

_TABLE = "bentpipe_pep"
_ANSWERS_S = 10.0
_FIRST = -450
"""Priority of rules before the kernel gathers fragments, which it does for all TPROXY sees."""

_RULES = """\
table ip {table} {{
 flags owner;
 set refused {{ type ipv4_addr . inet_service; flags dynamic, timeout; timeout {refused_s}s; }};
 chain others {{
  type filter hook prerouting priority {first};
  iifname {{ "{lan}", "{satellite}" }} ip frag-off & 0x3fff != 0 ip protocol != tcp notrack;
 }};
 chain ours {{
  type filter hook prerouting priority mangle - 1;
  meta l4proto {{ tcp, icmp }} socket transparent 1 meta mark set {mark} accept;
 }};
 chain calls {{
  {calls}
 }};
 chain opening {{
  type filter hook prerouting priority mangle;
  meta mark {mark} accept;
  ip daddr {{ {own} }} accept;
  tcp option md5sig exists accept;
  tcp option 29 exists accept;
  tcp flags & rst == rst ip saddr . tcp sport @refused update @refused {{ ip saddr . tcp sport }};
  tcp flags & (fin | syn | rst | ack) != syn accept;
  ip daddr . tcp dport @refused accept;
  jump calls;
 }};
}}
"""
"""Signed connections (RFC 2385, RFC 5925) cannot be split. Refusals that pass whole count, too.

Fragments of what is not TCP are not tracked, so that they pass one by one (PEP-TR-015).
"""

_CALLS = """\
iifname "{lan}" meta l4proto tcp tproxy to :{ports[0]} meta mark set {mark} accept;
iifname "{satellite}" meta l4proto tcp tproxy to :{ports[1]} meta mark set {mark} accept;
"""

REFUSED_S = 60
"""For how long a port that was refused is not answered for (PEP-SEC-005)."""


class Diversion:
    """The rules while they stand.

    Args:
        nft: takes commands, and answers in lines.
        calls: the rules that lead new connections here.
    """

    def __init__(self, nft: subprocess.Popen[str], calls: str) -> None:
        self._nft = nft
        self._calls = calls

    @contextlib.contextmanager
    def watched(self) -> Iterator[int]:
        """A descriptor that is readable once ``nft`` has ended, and the rules with it."""
        descriptor = os.pidfd_open(self._nft.pid)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def lead(self, new: Literal["here", "nowhere", "past"]) -> None:
        """Lead new connections here, leave them unanswered, or let them pass whole."""
        self.command(f"flush chain ip {_TABLE} calls")
        rules = {"here": self._calls, "nowhere": "drop", "past": ""}[new]
        for rule in rules.splitlines():
            self.command(f"add rule ip {_TABLE} calls {rule}")

    def spare(self, place: tuple[str, int]) -> None:
        """Let calls to an address and port pass whole for a time."""
        self.command(f"add element ip {_TABLE} refused {{ {place[0]} . {place[1]} }}")

    def command(self, text: str) -> None:
        """Let ``nft`` do something, and wait until it has.

        Raises:
            NetworkError: it refuses.
        """
        pipe, answer = self._nft.stdin, self._nft.stdout
        assert pipe is not None and answer is not None
        with contextlib.suppress(BrokenPipeError):
            # What is asked last is answered last; there is no other sign of success.
            pipe.write(f"{' '.join(text.split())}\nlist chain ip {_TABLE} calls\n")
            pipe.flush()
        if (why := _refusal(answer)) is not None:
            raise NetworkError(
                f"nft does not lead connections here: {why}; this needs nftables 1.0 with TPROXY, "
                "a Linux of 5.13 or newer, and the rights of the network's administrator."
            )


def _refusal(answer: IO[str]) -> str | None:
    """What ``nft`` says against a command, None when it lists the chain instead."""
    for line in answer:
        if line.startswith("}"):
            return None
        if "rror" in line:
            return line.strip()
    return "it has ended"


@contextlib.contextmanager
def diverted(
    lan: str, satellite: str, ports: tuple[int, int], run: Run = run_ip
) -> Iterator[Diversion]:
    """Lead connections that are opened through two interfaces to ports here, and take that back.

    Args:
        lan: the interface towards the ends at this side.
        satellite: that towards the satellite.
        ports: of transparent listening sockets, by interface.
        run: runs ``ip``.

    Raises:
        NetworkError: there is no such interface, no permission, or the kernel does not route.
    """
    for name in (lan, satellite):
        size_of(name, run)
    rule = ["priority", str(PRIORITY), "fwmark", str(MARK), "lookup", str(PRIORITY)]
    with contextlib.ExitStack() as held:
        run(["-4", "route", "replace", "local", "default", "dev", "lo", "table", str(PRIORITY)])
        held.callback(run, ["-4", "route", "flush", "table", str(PRIORITY)])
        held.enter_context(ruled(rule, run))
        calls = _CALLS.format(lan=lan, satellite=satellite, ports=ports, mark=MARK)
        found = Diversion(held.enter_context(_nft()), calls)
        own = ", ".join(_own_addresses(run))
        found.command(
            _RULES.format(
                table=_TABLE,
                calls=calls,
                mark=MARK,
                own=own,
                refused_s=REFUSED_S,
                first=_FIRST,
                lan=lan,
                satellite=satellite,
            )
        )
        yield found


def _own_addresses(run: Run) -> Iterator[str]:
    """Those of this host, as it starts: connections with itself are not split."""
    for interface in json.loads(run(["-json", "-4", "address"])):
        for each in interface.get("addr_info", ()):
            if "local" in each:
                yield each["local"]


@contextlib.contextmanager
def _nft() -> Iterator[subprocess.Popen[str]]:
    """``nft``, which owns its rules as long as it runs."""
    # Where administration is not in the search path, it is there nevertheless.
    where = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    try:
        process = subprocess.Popen(
            [shutil.which("nft", path=where) or "nft", "--interactive"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise NetworkError(
            f"The command nft does not start ({error.strerror}); install nftables."
        ) from None
    try:
        yield process
    finally:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_ANSWERS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

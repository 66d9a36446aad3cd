"""Conversations worth keeping, shared among shards, campaigns and machines.

They are kept in a database of examples of Hypothesis: a directory, or Redis. What is in it may come
from anybody, so that what is no script of this protocol is left out and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

from bentpipe_fuzz.campaign.script import Script, ScriptError, decode, encode

MOST_OCTETS = 64 << 10
"""Of one script; those of campaigns have less than 10,000."""

MOST_STEPS = 64

PATIENCE_S = 5.0
"""Seconds that Redis has to answer."""

REDIS = "redis://", "rediss://"


class SharingError(Exception):
    """The database cannot be used; the message is one sentence with its remedy."""


class Shared:
    """What campaigns against one protocol share.

    Args:
        database: where.
        suite: name of the suite.
        check: refuses by :class:`ScriptError` what the protocol cannot play.
        lost: what the database raises when it is gone.

    Attributes:
        unreadable: examples that were left out.
        problem: why nothing is shared any more; empty while something is. The campaign goes on.
    """

    def __init__(
        self, database: ExampleDatabase, suite: str, check: Callable[[Script], None],
        lost: tuple[type[Exception], ...] = (OSError,),
    ) -> None:  # fmt: skip
        self.unreadable = 0
        self.problem = ""
        self._database = database
        self._suite = suite
        self._key = f"bentpipe {suite}".encode()
        self._check = check
        self._lost = lost
        self._known: set[bytes] = set()

    @property
    def note(self) -> str:
        """What of it was left out, or that it is gone; empty when nothing is."""
        left_out = f"{self.unreadable} shared examples are no scripts and were left out"
        return self.problem or (left_out if self.unreadable else "")

    def keep(self, script: Script) -> None:
        """Let the others have a script."""
        octets = json.dumps(encode(script), sort_keys=True).encode()
        if self.problem or octets in self._known:
            return
        self._known.add(octets)
        try:
            self._database.save(self._key, octets)
        except self._lost as error:
            self.problem = f"nothing is shared any more: {error}"

    def fresh(self) -> list[Script]:
        """The scripts that others have kept since the last time, in a fixed order."""
        if self.problem:
            return []
        try:
            found = set(self._database.fetch(self._key)) - self._known
        except self._lost as error:
            self.problem = f"nothing is shared any more: {error}"
            return []
        self._known |= found
        scripts = [self._read(octets) for octets in sorted(found)]
        self.unreadable += scripts.count(None)
        return [script for script in scripts if script is not None]

    def _read(self, octets: bytes) -> Script | None:
        try:
            script = decode(json.loads(octets)) if len(octets) <= MOST_OCTETS else None
            if script is None or script.suite != self._suite or script.length > MOST_STEPS:
                return None
            self._check(script)
        except (ScriptError, ValueError, RecursionError):
            return None
        return script


def shared(where: str, suite: str, check: Callable[[Script], None]) -> Shared:
    """What is shared at a place: a directory, or ``redis://HOST:PORT/NUMBER``.

    Raises:
        SharingError: it cannot be used.
    """
    if where.startswith(REDIS):
        return _in_redis(where, suite, check)
    folder = Path(where)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SharingError(f"{where} cannot be a directory: {error.strerror}.") from None
    return Shared(DirectoryBasedExampleDatabase(folder), suite, check)


def _in_redis(where: str, suite: str, check: Callable[[Script], None]) -> Shared:
    try:
        import redis
        from hypothesis.extra.redis import RedisExampleDatabase
    except ImportError:
        raise SharingError(
            "Redis's client is not installed; `pip install 'bentpipe[scale]'`."
        ) from None
    host = where.rpartition("@")[2].removeprefix("redis://").removeprefix("rediss://")
    try:
        client = redis.Redis.from_url(
            where, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S
        )
        client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise SharingError(f"Redis at {host} does not answer: {error}.") from None
    lost = (redis.RedisError, OSError)
    return Shared(RedisExampleDatabase(client, key_prefix=b"bentpipe:"), suite, check, lost)

"""The composition root: which class plays which part of an endpoint."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_reference.stp.actions import Actions, Numbers
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.cookies import CookieJar, Cookies
from bentpipe_reference.stp.csn import CsnGenerator
from bentpipe_reference.stp.events import TraceSink
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.memory import Share
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.table import Machine, make_machine
from bentpipe_reference.stp.variables import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The classes that an endpoint is made of; mutants and experiments replace some.

    A subclass of a part stands for exactly one attribute.
    """

    guards: type[Guards] = Guards
    actions: type[Actions] = Actions
    idle: type[Idle] = Idle
    connection: type[Connection] = Connection
    outgoing: type[Outgoing] = Outgoing
    sender: type[Sender] = Sender
    receiver: type[Receiver] = Receiver
    congestion: type[Congestion] = Congestion
    pacer: type[Pacer] = Pacer
    polling: type[Polling] = Polling
    csns: type[CsnGenerator] = CsnGenerator
    cookies: type[Cookies] = Cookies
    jar: type[CookieJar] = CookieJar

    def make_machine(self, idle: Idle, jar: CookieJar, numbers: Numbers) -> Machine:
        """The state table of an endpoint."""
        guards = self.guards(idle)
        actions = self.actions(guards, idle, self.receiver, jar, numbers)
        return make_machine(guards, actions)

    def make_connection(
        self, config: StpConfig, machine: Machine, identity: Identity, csn: int, iss: int,
        share: Share, trace: TraceSink | None,
    ) -> Connection:  # fmt: skip
        """A connection in the state idle."""
        ports = (identity.local_port, identity.peer_port)
        return self.connection(
            config=config, machine=machine, identity=identity, csn=csn, iss=iss,
            outgoing=self.make_outgoing(config, ports, csn, iss), share=share, trace=trace,
        )  # fmt: skip

    def make_outgoing(
        self, config: StpConfig, ports: tuple[int, int], csn: int, iss: int
    ) -> Outgoing:
        """The sending side of a connection between two ports, ours first, with these numbers."""
        rtt, congestion = RoundTrip(), self.congestion(config)
        return self.outgoing(
            config, ports, csn, rtt, congestion, self.sender(config, iss, congestion),
            self.pacer(config, congestion, rtt), self.polling(config, rtt),
        )  # fmt: skip


TRUE_PARTS = Parts()
"""The reference itself."""

"""The worked exchange of STP/1 appendix A, packet by packet."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.packets import Packet, Poll, Sd, Stat, Ustat
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender

PORTS_AND_TAG = (9, 4000, 7)


@dataclass
class Exchange:
    """A sender and a receiver; every packet passes the codec and is written down."""

    sender: Sender = field(default_factory=lambda: Sender(StpConfig(), 0, Congestion(StpConfig())))
    receiver: Receiver = field(default_factory=lambda: Receiver(StpConfig(), 0))
    log: list[str] = field(default_factory=list)

    def _carry(self, packet: Packet) -> Packet:
        arrived = decode(encode(packet))
        assert arrived == packet
        return arrived

    def sd(self, number: int, *, lost: bool = False) -> list[Ustat]:
        entry = self.sender.awaiting()
        if entry is None:
            entry = self.sender.take_new()
        else:
            self.sender.retransmit(entry)
        assert entry.number == number
        self.log.append(f"SD {number}")
        sd = self._carry(Sd(*PORTS_AND_TAG, 0, number, entry.data))
        assert isinstance(sd, Sd)
        run = None if lost else self.receiver.on_sd(sd.n_s, sd.data, sd.flags)
        if run is None:
            return []
        self.log.append(f"USTAT N(R)={self.receiver.vr_r}, {run[0]}..{run[1]}")
        return [Ustat(*PORTS_AND_TAG, 0, self.receiver.vr_r, self.receiver.vr_mr, run)]

    def poll(self) -> Poll:
        n_ps = self.sender.take_poll()
        self.log.append(f"POLL N(S)={self.sender.vt_s} N(PS)={n_ps}")
        poll = self._carry(Poll(*PORTS_AND_TAG, 0, self.sender.vt_s, n_ps, 0, 7))
        assert isinstance(poll, Poll)
        return poll

    def stat(self, poll: Poll) -> Stat:
        (elements,) = self.receiver.on_poll(poll.n_s)
        listed = ", ".join(map(str, elements)) or "empty"
        self.log.append(f"STAT N(R)={self.receiver.vr_r} N(PS)={poll.n_ps}, list {listed}")
        receiver = self.receiver
        stat = Stat(*PORTS_AND_TAG, 0, receiver.vr_r, receiver.vr_mr, poll.n_ps, 0, elements)
        carried = self._carry(stat)
        assert isinstance(carried, Stat)
        return carried


def until_the_loss() -> tuple[Exchange, Poll]:
    """The first lines of the example, up to the retransmission of SD 7."""
    run = Exchange()
    run.sender.max_sd = 1
    run.sender.write(bytes(range(11)))
    for number in range(5):
        assert run.sd(number) == []
    report = run.sender.on_stat(run.stat(run.poll()))
    assert report is not None and run.sender.vt_a == 5
    run.sd(5)
    run.sd(6)
    run.sd(7, lost=True)
    (ustat,) = run.sd(8)
    run.sd(9)
    poll = run.poll()
    assert run.sender.on_ustat(ustat) is not None
    return run, poll


def test_the_exchange_of_figure_8_is_reproduced() -> None:
    run, poll = until_the_loss()
    stat = run.stat(poll)
    run.sd(7)
    assert dict(run.sender.kept())[7] == 2, "its stamp"
    assert run.sender.on_stat(stat) is not None
    assert run.sender.queued() == [], "its stamp 2 is not below 2"
    run.sd(10)
    assert run.sender.on_stat(run.stat(run.poll())) is not None
    assert run.sender.vt_a == 11 and run.sender.kept() == []
    assert run.receiver.read() == bytes(range(11))
    assert run.log == [
        "SD 0", "SD 1", "SD 2", "SD 3", "SD 4",
        "POLL N(S)=5 N(PS)=1",
        "STAT N(R)=5 N(PS)=1, list empty",
        "SD 5", "SD 6", "SD 7", "SD 8",
        "USTAT N(R)=7, 7..8",
        "SD 9",
        "POLL N(S)=10 N(PS)=2",
        "STAT N(R)=7 N(PS)=2, list 7, 8, 10",
        "SD 7",
        "SD 10",
        "POLL N(S)=11 N(PS)=3",
        "STAT N(R)=11 N(PS)=3, list empty",
    ]  # fmt: skip


def test_a_lost_retransmission_goes_out_a_third_time() -> None:
    run, poll = until_the_loss()
    stat = run.stat(poll)
    run.sd(7, lost=True)
    run.sender.on_stat(stat)
    run.sd(10)
    run.sender.on_stat(run.stat(run.poll()))
    assert run.log[-1] == "STAT N(R)=7 N(PS)=3, list 7, 8, 11"
    assert run.sender.queued() == [7]
    run.sd(7)
    assert run.receiver.read() == bytes(range(11))

"""What RFC 9293 section 3.10.7.4 leaves open and no packet shows: innocent in one reading is so."""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.replay.flow import Freedom, read_flows
from bentpipe_conformance.protocols.tcp.story import FAIL, NOTHING, PASS, RTT, SIZE, Story


def closed(service: int = 7, *, sack: bool = False) -> Story:
    """Two segments are outstanding when the tester has filled the window, which is not read."""
    story = Story(sack=sack, service=service).send(0, 1)
    story.ack(0, after=0.3, data=bytes(60000), window=60000)
    story.window = 0
    return story


def doubts(story: Story | Receipt) -> set[Freedom]:
    return read_flows(story.trace())[0].doubts


def test_probe_of_a_closed_window_may_have_acknowledged() -> None:
    probed = closed().send(0, after=1.5).ack(2, after=0.4, data=b"?", window=60000)
    assert doubts(probed) == {Freedom.HEEDS}
    assert probed.ack(2, after=40.0, window=60000).verdicts("SNR-REC-008") == NOTHING
    ignored = closed().send(0, after=1.5).ack(0, after=40.0, window=60000)
    assert ignored.verdicts("SNR-REC-008") == FAIL


def test_probe_of_a_closed_window_may_have_reported() -> None:
    probed = closed(sack=True).ack(0, (1, 2), after=0.4, data=b"?", window=60000)
    assert doubts(probed) == {Freedom.HEEDS}
    told = closed(sack=True).ack(0, after=0.4, data=b"?", window=60000)
    assert doubts(told) == set()


def test_retransmission_above_what_a_probe_may_have_acknowledged() -> None:
    probed = closed().ack(1, after=0.4, data=b"?", window=60000)
    assert probed.send(1, after=2.5).verdicts("SNR-RTO-008") != FAIL
    ignored = closed().ack(0, after=0.4, window=60000)
    assert ignored.send(1, after=2.5).verdicts("SNR-RTO-008") == FAIL


def test_text_above_a_gap_whose_timestamp_may_be_old_may_have_acknowledged() -> None:
    """The copy's timestamp counts where it is taken first (RFC 7323 appendix D).

    The answer shows nothing: one is due to text above a gap, too.
    """
    receipt = Receipt(service=7, timestamps=True).data(0, 100).reply(100, payload=bytes(200))
    receipt.data(0, 1, tsval=1000 + 2**31 - 1, after=0.1).reply(100, seq=200)
    receipt.data(1000, 1100, ack=100, after=0.1).reply(100, seq=200).later()
    assert doubts(receipt) == {Freedom.REFUSES}


def reordered(seq: int) -> Story:
    """The segment numbered ``seq`` ends a recovery and opens the window; 200 came before it."""
    story = Story(sack=False, window=10 * SIZE).send(*range(10))
    story.ack(0, after=RTT, seq=200, data=bytes(50))
    for _ in range(3):
        story.ack(0, after=0.01, seq=250)
    return story.send(0).ack(10, after=RTT, seq=seq, data=bytes(50))


def test_older_segment_may_leave_the_window_as_it_is() -> None:
    assert doubts(reordered(100)) == {Freedom.KEEPS_WINDOW}
    assert reordered(100).verdicts("SNR-REC-013") == NOTHING
    assert doubts(reordered(250)) == set()
    assert reordered(250).verdicts("SNR-REC-013") == FAIL
    assert reordered(250).send(10, 11).verdicts("SNR-REC-013") == PASS

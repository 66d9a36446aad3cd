"""The Scapy layers of STP, as someone at Scapy's prompt uses them."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from bentpipe_conformance.protocols.stp.scapy_layer import (
        BEGIN,
        BGAK,
        BGREJ,
        END,
        ENDAK,
        POLL,
        SDP,
        STAT,
        STP,
        USTAT,
        STPCookie,
        STPMaxSD,
        STPOption,
        STPPadding,
        bind_udp,
        unbind_udp,
    )
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.packet import Packet, Raw

THERE = IP(src="192.0.2.1", dst="198.51.100.2")
BACK = IP(src="198.51.100.2", dst="192.0.2.1")


@pytest.mark.long
def test_layers_import_nothing_else_of_bentpipe() -> None:
    code = (
        "import sys, bentpipe_conformance.protocols.stp.scapy_layer\n"
        "print(*(name for name in sys.modules if name.startswith('bentpipe')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    layer = "bentpipe_conformance.protocols.stp.scapy_layer"
    packages = {layer.rsplit(".", depth)[0] for depth in (1, 2, 3)}
    assert set(done.stdout.split()) == {layer, *packages}


def test_tester_codec_imports_no_scapy() -> None:
    code = "import sys, bentpipe_conformance.protocols.stp.codec; print('scapy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("body", [BEGIN, BGAK, END, ENDAK, BGREJ, SDP, POLL, STAT, USTAT])
def test_body_sets_the_type_and_comes_back(body: type[Packet]) -> None:
    for carrier in (THERE, IP(src="192.0.2.1", dst="192.0.2.2", proto=254)):
        seen = IP(bytes(carrier / STP(sport=1, dport=2, seq=3) / body()))
        assert seen.proto in (253, 254)
        assert isinstance(seen[STP].payload, body)
        assert seen[STP].type == body.type_code and not seen[STP].malformed
    seen = IPv6(bytes(IPv6(src="2001:db8::1", dst="2001:db8::2") / STP() / body()))
    assert seen.nh == 253 and isinstance(seen[STP].payload, body)


def test_checksum_covers_addresses_over_ip_and_not_over_udp() -> None:
    packet = STP(sport=40000, dport=9, seq=7, tag=0x5678) / Raw(b"Hello, satellite")
    over_udp = bytes(THERE / UDP(sport=47000, dport=47001) / packet)[28:]
    assert over_udp == bytes(packet)
    over_ip = bytes(THERE / packet)[20:]
    assert over_ip[:8] + over_ip[10:] == over_udp[:8] + over_udp[10:]
    assert over_ip[8:10] != over_udp[8:10]


def test_options_are_padded_and_counted_unless_optlen_is_given() -> None:
    options = [STPMaxSD(max_sd=1400), STPOption(kind=9, value=b"abc")]
    octets = bytes(STP() / BEGIN(options=options) / Raw(b"data"))
    assert octets[12] == 0x23
    assert octets[20:] == bytes.fromhex("01040578 0905616263 000000") + b"data"
    begin = STP(octets)[BEGIN]
    assert [type(option) for option in begin.options] == [STPMaxSD, STPOption, *[STPPadding] * 3]
    assert begin.payload.load == b"data"
    odd = STP(bytes(STP() / BEGIN(options=options, optlen=15)))
    assert odd.malformed and isinstance(odd.payload, Raw)


def test_reject_carries_a_cookie_behind_its_optlen() -> None:
    octets = bytes(STP() / BGREJ(reason=6, peer_csn=5, options=[STPCookie(cookie=b"8 octets")]))
    assert octets[12:] == bytes.fromhex("06030000 00000005 020a") + b"8 octets" + bytes(2)
    bgrej = STP(octets)[BGREJ]
    assert [type(option) for option in bgrej.options] == [STPCookie, STPPadding, STPPadding]
    assert bgrej.options[0].cookie == b"8 octets"
    assert STP(octets + b"x").malformed and STP(octets[:-4]).malformed


def test_cookie_of_a_forbidden_length_is_an_unknown_option() -> None:
    for size in (7, 33):
        option = STPOption(kind=2, value=bytes(size))
        begin = STP(bytes(STP() / BEGIN(options=[option])))[BEGIN]
        assert type(begin.options[0]) is STPOption


def test_only_the_first_octets_of_a_begin_of_another_version_are_read() -> None:
    octets = bytes(STP() / BEGIN(version=1, optlen=15, csn=7) / Raw(b"x"))
    seen = STP(octets)
    assert not seen.malformed and seen[BEGIN].csn == 7 and seen[Raw].load == b"x"
    assert bytes(seen) == octets


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        (BGAK(peer_csn=5), BEGIN(csn=5)),
        (BGREJ(peer_csn=5), BEGIN(csn=5)),
        (ENDAK(peer_csn=5), END(csn=5)),
        (STAT(n_ps=3, timestamp=7), POLL(n_ps=3, timestamp=7)),
        (STAT(n_ps=3, timestamp=7), SDP(n_ps=3, timestamp=7)),
    ],
)
def test_answer_is_matched_to_its_question_only(answer: Packet, question: Packet) -> None:
    asked = IP(bytes(THERE / STP(sport=1, dport=2) / question))
    reply = IP(bytes(BACK / STP(sport=2, dport=1) / answer))
    assert reply.answers(asked)
    assert not asked.answers(reply)
    assert not IP(bytes(BACK / STP(sport=2, dport=3) / answer)).answers(asked)
    name = "n_ps" if isinstance(answer, STAT) else "peer_csn"
    other = answer.copy()
    setattr(other, name, 99)
    assert not IP(bytes(BACK / STP(sport=2, dport=1) / other)).answers(asked)


def test_data_answers_nothing() -> None:
    asked = THERE / STP(sport=1, dport=2) / POLL()
    assert not (BACK / STP(sport=2, dport=1) / Raw(b"x")).answers(asked)


def test_summary_names_type_number_ports_and_flags() -> None:
    packet = STP(sport=40000, dport=9, seq=7, flags="FIN") / Raw(b"x")
    assert packet.mysummary() == "STP SD 7 40000 > 9 FIN"
    assert (STP(seq=7) / POLL()).mysummary() == "STP POLL 7 0 > 0"


def test_udp_port_is_bound_for_both_directions_until_unbound() -> None:
    octets = bytes(THERE / UDP(sport=5, dport=48123) / STP() / POLL())
    answer = bytes(THERE / UDP(sport=48123, dport=5) / STP() / POLL())
    bind_udp(48123)
    try:
        assert POLL in IP(octets) and POLL in IP(answer)
        assert IP(bytes(THERE / UDP() / STP())).dport == 48123
    finally:
        unbind_udp(48123)
    assert STP not in IP(octets)


def test_malformed_packets_are_not_taken_for_their_type() -> None:
    poll = bytes(STP() / POLL())
    assert STP(poll + b"x").malformed and STP(poll[:-1]).malformed and STP(poll[:12]).malformed
    assert STP(bytes(STP(type=5) / Raw(bytes(8)))).malformed
    stat = bytes(STP() / STAT(elements=[1, 2]))
    assert STP(stat[:-1]).malformed and not STP(stat[:-4]).malformed
    assert not STP(bytes(STP())).malformed


def test_contribution_is_loaded_by_scapy_under_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    from bentpipe_conformance import contrib
    from scapy.main import load_contrib
    from scapy.packet import explore

    names: dict[str, object] = {}
    load_contrib("bentpipe_stp", globals_dict=names)
    assert names["STP"] is STP and contrib.LAYERS["bentpipe_stp"].POLL is POLL
    explore("bentpipe_stp")
    assert "STP USTAT" in capsys.readouterr().out

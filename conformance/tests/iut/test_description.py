from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest
from bentpipe_conformance.engine.crossing import PortPlace
from bentpipe_conformance.engine.lane import OpenRequest
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.iut.attachment import Attach
from bentpipe_conformance.iut.build import RECIPES
from bentpipe_conformance.iut.contents import contents_of
from bentpipe_conformance.iut.description import IutDescription, list_iuts, load_iut
from bentpipe_conformance.iut.proforma import Item, complete, load_proforma
from bentpipe_conformance.iut.table import DescriptionError
from bentpipe_conformance.protocols.stp.suite import SUITE as STP
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR

GOOD = """
id = "mine"
name = "My stack"
[attach]
kind = "tun"
[start]
command = ["{here}/mine", "--fd", "{fd}", "--address", "{address}", "{mtu}"]
ready = "listening"
[services]
echo = 7007
[ics]
sack = true
congestion_control = "cubic"
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(DescriptionError) as caught:
        load_iut(written(tmp_path, text))
    return str(caught.value)


def test_own_description_loaded_by_path_has_defaults_for_the_rest(tmp_path: Path) -> None:
    mine = load_iut(written(tmp_path, GOOD))
    assert (mine.id, mine.name) == ("mine", "My stack")
    assert mine.attach == Attach("tun")
    assert mine.start.ready == "listening"
    assert mine.services == {"echo": 7007, "discard": 9, "chargen": 19}
    assert mine.ics["sack"] is True
    assert mine.ics["congestion_control"] == "cubic"
    assert mine.ics["timestamps"] is load_proforma(SNR)["timestamps"].default
    assert set(mine.ics) == set(load_proforma(SNR))


def test_processes_that_a_description_asks_for_are_in_the_plan(tmp_path: Path) -> None:
    asking = GOOD.replace("[ics]", "[isolation]\nprocesses = 400\n[ics]")
    for text, more in ((GOOD, {}), (asking, {"processes": 400})):
        mine = load_iut(written(tmp_path, text))
        assert mine.isolation.record("tun") == {"kind": "isolated", **more}


def test_command_filled_in_keeps_what_the_lane_fills_later(tmp_path: Path) -> None:
    start = load_iut(written(tmp_path, GOOD)).start
    assert start.words({"here": "/x", "fd": 5, "mtu": 1500}) == [
        "/x/mine", "--fd", "5", "--address", "{address}", "1500",
    ]  # fmt: skip


BOX = """
id = "box"
name = "Box"
[attach]
kind = "address"
interface = "eth1"
address = "192.0.2.7"
gateway = "192.0.2.254/24"
"""


def test_stack_with_two_ports_sends_by_the_second(tmp_path: Path) -> None:
    ports = 'gateway = "192.0.2.254/24"\nsends_on = "eth2"\nsends_to = "198.51.100.254/24"'
    attach = load_iut(written(tmp_path, BOX.replace('gateway = "192.0.2.254/24"', ports))).attach
    assert (attach.interface, attach.sends_on) == ("eth1", "eth2")
    assert (attach.gateway, attach.sends_to) == ("192.0.2.254", ("198.51.100.254", 24))


def test_stack_is_told_to_call_by_another_port(tmp_path: Path) -> None:
    text = BOX + '[open]\ncommand = ["ssh", "box", "{tester}"]\non_host = true\n'
    opening = load_iut(written(tmp_path, text)).opening
    assert opening is not None and opening.on_host and opening.filled({"tester": "x"}).on_host


def test_program_in_a_namespace_is_not_told_from_the_host(tmp_path: Path) -> None:
    text = GOOD + '\n[open]\ncommand = ["x"]\non_host = true\n'
    with pytest.raises(DescriptionError, match="'on_host' only with a 'command'"):
        load_iut(written(tmp_path, text))


def test_stack_at_an_address_needs_no_command(tmp_path: Path) -> None:
    box = load_iut(written(tmp_path, BOX))
    assert box.attach == Attach("address", "eth1", "192.0.2.7", "192.0.2.254", 24)
    assert box.start.command == ()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('gateway = "192.0.2.254/24"', "", "mine.toml: [attach] lacks 'gateway'"),
        ("192.0.2.254/24", "near", "mine.toml: [attach] needs an IPv4 address with a prefix "
         "length for 'gateway', such as 192.0.2.254/24, not 'near'"),
        ("192.0.2.254/24", "192.0.2.254", "mine.toml: [attach] needs a 'gateway' in one network "
         "with 'address' 192.0.2.7, and 192.0.2.254 is not; its prefix length says how large the "
         "network is"),
        ("192.0.2.254/24", "192.0.2.7/24", "mine.toml: [attach] needs a 'gateway' in one network "
         "with 'address' 192.0.2.7, and 192.0.2.7/24 is not; its prefix length says how large the "
         "network is"),
        ('"192.0.2.254/24"', '"192.0.2.254/24"\nsends_on = "eth2"',
         "mine.toml: [attach] needs 'sends_on' and 'sends_to' together"),
        ('"192.0.2.254/24"', '"192.0.2.254/24"\nsends_on = "eth2"\nsends_to = "there"',
         "mine.toml: [attach] needs an IPv4 address with a prefix length for 'sends_to', such as "
         "198.51.100.254/24, not 'there'"),
        ('"192.0.2.254/24"', '"192.0.2.254/24"\nsends_on = "eth1"\nsends_to = "198.51.100.1/24"',
         "mine.toml: [attach] names eth1 twice; leave 'sends_on' and 'sends_to' out"),
        ('"192.0.2.254/24"', '"192.0.2.254/24"\nsends_on = "eth2"\nsends_to = "192.0.2.3/28"',
         "mine.toml: [attach] needs a network of its own for 'sends_to', and 192.0.2.0/28 overlaps "
         "192.0.2.0/24"),
        ("192.0.2.", "10.78.2.", "mine.toml: [attach] has the network 10.78.2.0/24, which "
         "overlaps the testers' 10.78.0.0/16; give the implementation another address"),
    ],
)  # fmt: skip
def test_mistake_in_a_gateway_gives_one_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in BOX
    assert refusal(tmp_path, BOX.replace(old, new)) == sentence


RACK = """
id = "mine"
name = "My box"
suite = "pep"
[attach]
kind = "ports"
[attach.client]
interface = "eth1"
address = "192.0.2.7"
gateway = "192.0.2.254/24"
[attach.server]
interface = "eth2"
address = "198.51.100.7"
gateway = "198.51.100.254/24"
"""


def test_box_with_two_ports_has_a_side_at_each(tmp_path: Path) -> None:
    box = load_iut(written(tmp_path, RACK))
    assert box.attach.ports == (
        PortPlace("client", "eth1", "192.0.2.7", "192.0.2.254"),
        PortPlace("server", "eth2", "198.51.100.7", "198.51.100.254"),
    )


def test_box_that_bridges_needs_no_addresses(tmp_path: Path) -> None:
    bare = "\n".join(line for line in RACK.splitlines() if "." not in line or "[" in line)
    box = load_iut(written(tmp_path, bare))
    assert [place.address for place in box.attach.ports] == ["", ""]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("eth2", "eth1", "mine.toml: [attach.server] names eth1, as does [attach.client]; each "
         "port has its own"),
        ("[attach.server]", "[attach.far]", "mine.toml: [attach] has unknown key 'far'; allowed "
         "are kind, client, server, satellite-near, satellite-far"),
        ("[attach.server]", "[attach.satellite-far]", "mine.toml: [attach] needs [attach.client], "
         "[attach.server], and for a pair of boxes [attach.satellite-near] and "
         "[attach.satellite-far] besides"),
        ('address = "198.51.100.7"\ngateway = "198.51.100.254/24"', "", "mine.toml: [attach] "
         "needs 'address' and 'gateway' at every port of a box that routes, and at none of one "
         "that bridges"),
        ("198.51.100.", "192.0.2.", "mine.toml: [attach.server] has the network 192.0.2.0/24, "
         "which overlaps the other port's 192.0.2.0/24; give the implementation another address"),
        ("198.51.100.", "10.77.3.", "mine.toml: [attach.server] has the network 10.77.3.0/24, "
         "which overlaps the testers' 10.77.0.0/16; give the implementation another address"),
        ("[attach.client]", '[start]\ncommand = ["x"]\n[attach.client]', "mine.toml: [start] has "
         "no meaning for kind 'ports'; leave it out"),
        ('suite = "pep"', 'suite = "snr"', "mine.toml: [attach] has kind 'ports', and suite 'snr' "
         "judges what is an end itself: choose another one"),
    ],
)  # fmt: skip
def test_mistake_in_ports_gives_one_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in RACK
    assert refusal(tmp_path, RACK.replace(old, new)) == sentence


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('id = "mine"', 'id = "mine"\nsacks = 1', "mine.toml: the file has unknown key 'sacks'; "
         "allowed are id, name, suite, attach, start, sysctl, services, "
         "encapsulation, open, isolation, ics"),
        ('id = "mine"', "", "mine.toml: the file lacks 'id'"),
        ('id = "mine"', 'id = "a b"', "mine.toml: the file needs letters, digits and '-' only for "
         "'id', not 'a b'"),
        ('name = "My stack"', "name = 3", "mine.toml: the file needs a text for 'name', not 3"),
        ('name = "My stack"', 'name = " "', "mine.toml: the file needs a text for 'name', not an "
         "empty one"),
        ('kind = "tun"', 'kind = "bus"', "mine.toml: [attach] needs one of tun, tap, namespace, "
         "between, pair, address, ports, in-process for 'kind', not 'bus'"),
        ('kind = "tun"', 'kind = "tun"\naddress = "10.0.0.1"', "mine.toml: [attach] has unknown "
         "key 'address'; allowed are kind"),
        ('kind = "tun"', 'kind = "address"\naddress = "ten"\ngateway = "10.0.0.2/24"',
         "mine.toml: [attach] needs an IPv4 address for 'address', not 'ten'"),
        ('kind = "tun"', 'kind = "address"\naddress = "10.0.0.1"\ngateway = "10.0.0.2/24"',
         "mine.toml: [attach] lacks 'interface'"),
        ('kind = "tun"', 'kind = "in-process"\nvariant = "reno"',
         "mine.toml: [start] has no meaning for kind 'in-process'; leave it out"),
        ('ready = "listening"', "ready = true", "mine.toml: [start] needs a text for 'ready', "
         "not True"),
        ('"{here}/mine"', "7", "mine.toml: [start] needs a list of words for 'command', and 7 is "
         "not a text"),
        ('"{here}/mine"', '"{home}/mine"', "mine.toml: [start] has unknown placeholder {home} in "
         "'command'; allowed are python, here, cache, fd, address, prefix, gateway, mtu, mac, "
         "gateway_mac, udp_port, protocol, services, lan"),
        ('"{here}/mine"', '"{cache}/mine"', "mine.toml: [start] needs 'build' and {cache} in "
         "'command' together or not at all"),
        ('"--fd", "{fd}"', '"--fd", "3"', "mine.toml: [start] needs {fd} in 'command': kind 'tun' "
         "inherits a descriptor"),
        ('command = ["{here}/mine", "--fd", "{fd}", "--address", "{address}", "{mtu}"]', "",
         "mine.toml: [start] lacks 'command', which kind 'tun' needs"),
        ("[services]", '[sysctl]\n"net.ipv4.tcp_sack" = 0\n[services]',
         "mine.toml: [sysctl] has a meaning only for kinds 'namespace', 'between' and 'pair'"),
        ("echo = 7007", 'echo = "seven"', "mine.toml: [services] needs a port number for 'echo', "
         "not 'seven'"),
        ("echo = 7007", "echo = true", "mine.toml: [services] needs a port number for 'echo', "
         "not True"),
        ("echo = 7007", "echo = 70000", "mine.toml: [services] needs a port number from 1 to "
         "65535 for 'echo', not 70000"),
        ("echo = 7007", "time = 37", "mine.toml: [services] has unknown key 'time'; allowed are "
         "echo, discard, chargen"),
        ("sack = true", "sack = 1", "mine.toml: [ics] needs true or false for 'sack', not 1"),
        ("[ics]", "[isolation]\nprocesses = 5000\n[ics]", "mine.toml: [isolation] needs a number "
         "from 1 to 1024 for 'processes', not 5000"),
        ("[ics]", "[isolation]\nprocesses = 99\nprivileged = true\n[ics]", "mine.toml: "
         "[isolation] has no meaning for 'files', 'network' and 'processes' with 'privileged'"),
        ("[ics]\nsack = true", "[ics]\ninitial_window_segments = true",
         "mine.toml: [ics] needs a whole number for 'initial_window_segments', not True"),
    ],
)  # fmt: skip
def test_mistake_in_a_description_gives_one_sentence_with_file_and_key(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in GOOD
    assert refusal(tmp_path, GOOD.replace(old, new, 1)) == sentence


def test_unknown_statement_item_names_the_proformas_items(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace("sack = true", "sacks = true"))
    assert said.startswith("mine.toml: [ics] has unknown key 'sacks'; allowed are sack, ")


def test_unknown_congestion_control_names_the_choices(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD.replace('"cubic"', '"qubic"'))
    assert said.startswith("mine.toml: [ics] needs one of reno, cubic, ")
    assert said.endswith("for 'congestion_control', not 'qubic'")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('"kernel.panic" = 1', "[sysctl] has unknown key 'kernel.panic'; allowed are quoted names "
         'under net., such as "net.ipv4.tcp_sack"'),
        ('"net.ipv4.tcp_sack" = true', "[sysctl] needs a text or a whole number for "
         "'net.ipv4.tcp_sack', not True"),
        ("net.ipv4.tcp_sack = 1", "[sysctl] has unknown key 'net'; allowed are quoted names under "
         'net., such as "net.ipv4.tcp_sack"'),
    ],
)  # fmt: skip
def test_kernel_setting_that_cannot_be_set_is_refused(
    tmp_path: Path, line: str, sentence: str
) -> None:
    text = 'id="k"\nname="K"\n[attach]\nkind="namespace"\n[start]\ncommand=["serve"]\n[sysctl]\n'
    assert refusal(tmp_path, text + line) == f"mine.toml: {sentence}"


def test_file_that_is_not_toml_is_refused_with_the_place(tmp_path: Path) -> None:
    said = refusal(tmp_path, 'id = "mine"\nname = = 1\n')
    assert said.startswith("mine.toml: is not TOML: ")
    assert "line 2" in said


def test_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DescriptionError, match=r"mine\.toml: is not TOML"):
        load_iut(str(path))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"none\.toml: cannot be read: No such file"):
        load_iut(str(tmp_path / "none.toml"))


def test_misspelt_identifier_suggests_the_right_one() -> None:
    with pytest.raises(DescriptionError, match=r"no implementation 'lnux'; did you mean 'linux'\?"):
        load_iut("lnux")


def test_outlandish_identifier_points_to_the_list() -> None:
    with pytest.raises(DescriptionError, match="see 'bentpipe list iuts'"):
        load_iut("zzzzzzzz")


def test_every_example_of_the_readme_is_a_good_description(tmp_path: Path) -> None:
    readme = load_iut("linux").path.with_name("README.md").read_text()
    examples = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    kinds = [load_iut(written(tmp_path, example)).attach.kind for example in examples]
    assert kinds == ["tun", "namespace", "address", "namespace"]


@pytest.fixture(params=list_iuts(), ids=lambda iut: iut.id)
def bundled(request: pytest.FixtureRequest) -> IutDescription:
    found: IutDescription = request.param
    return found


def test_bundled_description_is_found_by_its_identifier(bundled: IutDescription) -> None:
    assert bundled.path.stem == bundled.id
    assert load_iut(bundled.id) == bundled
    assert bundled.services == STANDARD_SERVICES


def test_bundled_description_names_a_recipe_and_files_that_exist(bundled: IutDescription) -> None:
    assert not bundled.start.build or bundled.start.build in RECIPES
    for word in bundled.start.words({"here": bundled.path.parent}):
        assert not word.startswith(str(bundled.path.parent)) or Path(word).is_file()


def test_bundled_list_has_what_the_documentation_promises() -> None:
    assert {iut.id for iut in list_iuts()} >= {
        "reference", "reference-hk99", "linux", "linux-reno", "linux-cubic", "linux-vegas",
        "linux-hybla", "linux-westwood", "linux-bbr", "linux-nosack", "linux-nosack-misdeclared",
        "linux-notimestamps", "lwip", "smoltcp", "gvisor",
    }  # fmt: skip


def test_linux_without_sack_differs_from_the_misdeclared_one_only_in_the_statement() -> None:
    honest, lying = load_iut("linux-nosack"), load_iut("linux-nosack-misdeclared")
    assert honest.sysctl == lying.sysctl
    assert honest.sysctl["net.ipv4.tcp_sack"] == "0"
    assert (honest.ics["sack"], lying.ics["sack"]) == (False, True)


def test_statement_checked_against_another_proforma_uses_its_defaults() -> None:
    proforma = {"depth": Item("depth", "integer", 3, "How deep?")}
    assert complete({}, proforma) == {"depth": 3}
    assert complete({"depth": 4}, proforma) == {"depth": 4}
    with pytest.raises(ValueError, match="has unknown key 'width'; allowed are depth"):
        complete({"width": 1}, proforma)


STP_GOOD = """
id = "mine"
name = "My STP"
suite = "stp"
[attach]
kind = "namespace"
[encapsulation]
kind = "ip"
protocol = 254
[start]
command = ["{here}/mine", "{address}", "{protocol}"]
[open]
line = "open {tester} {port} {service} {octets}"
[ics]
active_open = true
"""


def test_stp_description_has_its_suite_encapsulation_and_opening(tmp_path: Path) -> None:
    mine = load_iut(written(tmp_path, STP_GOOD))
    assert mine.suite is STP
    assert (mine.encapsulation.kind, mine.encapsulation.protocol) == ("ip", 254)
    assert set(mine.ics) == set(load_proforma(STP))
    assert mine.opening is not None
    request = OpenRequest("10.78.0.1", 9, 5000)
    filled = mine.opening.filled({**asdict(request), "service": request.service})
    assert filled.line == "open 10.78.0.1 9 chargen 5000"


def test_description_without_them_is_of_tcp(tmp_path: Path) -> None:
    mine = load_iut(written(tmp_path, GOOD))
    assert mine.suite is SNR
    assert mine.opening is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('suite = "stp"', 'suite = "sctp"', "the file has an unknown 'suite': there is no suite "
         "'sctp'; there are pep, rwbp, snr, stp"),
        ('suite = "stp"', 'suite = "snr"', "[encapsulation] has no meaning for suite 'snr'"),
        ('kind = "ip"', 'kind = "gre"', "[encapsulation] needs one of udp, ip for 'kind', not "
         "'gre'"),
        ("protocol = 254", "protocol = 118", "[encapsulation] needs 253 or 254 for 'protocol', not "
         "118"),
        ("protocol = 254", "port = 7", "[encapsulation] has unknown key 'port'; allowed are kind, "
         "protocol"),
        ('kind = "ip"\nprotocol = 254', "port = 0", "[encapsulation] needs a port number from 1 to "
         "65535 for 'port', not 0"),
        ("{octets}", "{many}", "[open] has unknown placeholder {many}; allowed are python, here, "
         "tester, udp_port, port, service, octets"),
        ("line =", 'command = ["x"]\nline =', "[open] needs either 'line' or 'command'"),
        ('line = "open {tester} {port} {service} {octets}"', "command = [1]",
         "[open] needs a list of words for 'command', and 1 is not a text"),
    ],
)  # fmt: skip
def test_mistake_in_an_stp_description_gives_one_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in STP_GOOD
    if old == 'suite = "stp"' and "snr" in new:
        said = refusal(tmp_path, STP_GOOD.replace(old, new, 1).replace("active_open", "sack"))
    else:
        said = refusal(tmp_path, STP_GOOD.replace(old, new, 1))
    assert said == f"mine.toml: {sentence}"


def test_line_for_a_program_that_is_not_started_is_refused(tmp_path: Path) -> None:
    text = BOX.replace("[attach]", 'suite = "stp"\n[attach]', 1).partition("[ics]")[0]
    said = refusal(tmp_path, text + '[open]\nline = "open"\n')
    assert said.endswith("use [open] command")


PROXY = """
id = "mine"
name = "My proxy"
suite = "pep"

[attach]
kind = "between"

[start]
command = ["{here}/proxy"]
ready_port = 3129
setup = [["nft", "-f", "{here}/rules.nft"]]
"""


def test_proxy_when_read_has_its_rules(tmp_path: Path) -> None:
    read = load_iut(written(tmp_path, PROXY))
    assert read.attach.kind == "between"
    assert read.start.ready_port == 3129
    (words,) = read.start.setup_words({"here": tmp_path})
    assert words[1:] == ["-f", f"{tmp_path}/rules.nft"]
    assert words[0].endswith("nft")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"between"', '"namespace"', "mine.toml: [attach] has kind 'namespace', and suite 'pep' "
         "judges what stands between two ends: choose 'between', 'pair' or 'ports'"),
        ('suite = "pep"', "", "mine.toml: [attach] has kind 'between', and suite 'snr' judges "
         "what is an end itself: choose another one"),
        ('["{here}/proxy"]', "[]", "mine.toml: [start] lacks 'command', which kind 'between' "
         "needs"),
        ("ready_port", 'ready = "up"\nready_port', "mine.toml: [start] needs either 'ready' or "
         "'ready_port'"),
        ("3129", "0", "mine.toml: [start] needs a port number from 1 to 65535 for 'ready_port', "
         "not 0"),
        ('[["nft", "-f", "{here}/rules.nft"]]', '["nft"]', "mine.toml: [start] needs a list of "
         "commands, each a list of words, for 'setup', and 'nft' is none"),
        ("{here}/rules", "{home}/rules", "mine.toml: [start] has unknown placeholder {home} in "
         "'setup'; allowed are python, here, cache, fd, address, prefix, gateway, mtu, mac, "
         "gateway_mac, udp_port, protocol, services, lan"),
    ],
)  # fmt: skip
def test_mistake_in_a_proxy_gives_one_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in PROXY
    assert refusal(tmp_path, PROXY.replace(old, new)) == sentence


def test_stack_on_a_tun_has_no_setup(tmp_path: Path) -> None:
    told = GOOD.replace("[start]", '[start]\nsetup = [["true"]]')
    assert refusal(tmp_path, told) == (
        "mine.toml: [start] has a meaning for 'ready_port' and 'setup' only with kinds "
        "'namespace', 'between' and 'pair'"
    )


PAIR = """
id = "mine"
name = "My pair"
suite = "pep"

[attach]
kind = "pair"

[start]
command = ["{here}/proxy", "{lan}"]
setup = [["ip", "link", "show", "{lan}"]]

[start.far]
command = ["{here}/other", "--quick"]
ready = "up"
"""


def test_pair_when_read_has_two_programs(tmp_path: Path) -> None:
    start = load_iut(written(tmp_path, PAIR)).start
    assert start.far is not None
    assert start.words({"here": tmp_path}) == [f"{tmp_path}/proxy", "{lan}"]
    assert start.far.words({"here": tmp_path}) == [f"{tmp_path}/other", "--quick"]
    assert (start.ready, start.far.ready) == ("ready", "up")
    assert (len(start.setup), start.far.setup) == (1, ())


def test_both_programs_of_a_pair_are_among_what_is_recorded(tmp_path: Path) -> None:
    for name in ("proxy", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = contents_of(load_iut(written(tmp_path, PAIR))).files
    assert {str(tmp_path / "proxy"), str(tmp_path / "other")} <= set(found)


def test_pair_of_one_program_has_no_other(tmp_path: Path) -> None:
    assert load_iut(written(tmp_path, PAIR.partition("[start.far]")[0])).start.far is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"pair"', '"between"', "mine.toml: [start] has a meaning for {lan} only with kind 'pair'"),
        ('["{here}/proxy", "{lan}"]', "[]", "mine.toml: [start] lacks 'command', which kind 'pair' "
         "needs"),
        ('["{here}/other", "--quick"]', "[]", "mine.toml: [start.far] lacks 'command', which kind "
         "'pair' needs"),
        ('ready = "up"', 'restart = "case"', "mine.toml: [start.far] has unknown key 'restart'; "
         "allowed are command, ready, ready_port, setup"),
        ("--quick", "{cache}", "mine.toml: [start] needs 'build' and {cache} in 'command' together "
         "or not at all"),
    ],
)  # fmt: skip
def test_mistake_in_a_pair_gives_one_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in PAIR
    assert refusal(tmp_path, PAIR.replace(old, new)) == sentence


def test_single_box_has_no_other_program(tmp_path: Path) -> None:
    told = PROXY + '[start.far]\ncommand = ["other"]\n'
    assert refusal(tmp_path, told) == (
        "mine.toml: [start] has a meaning for [start.far] only with kind 'pair'"
    )

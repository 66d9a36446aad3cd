"""``bentpipe pep``: the reference's box as a program, which splits the connections that it routes.

Like ``bentpipe stp`` it sees the reference's protocol code: here the reference is not judged but
run by the user.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from bentpipe_conformance.cli.options import all_of, examples, json_option
from bentpipe_conformance.cli.outcome import USAGE, Failure, explained

METRICS = "127.0.0.1:9464"
"""Where ``pep status`` asks if nothing else is said."""


@click.group(
    epilog=examples(
        "pep run --lan eth0 --satellite eth1",
        "pep run --config pep.toml --metrics 127.0.0.1:9464",
        "pep status",
    )
)
def pep() -> None:
    """Split TCP connections before and behind a satellite link, as PEP/1 has it.

    'bentpipe show pep' is the specification; 'bentpipe certify' judges such a box, this one and
    others.
    """


def _configured(ctx: click.Context, option: click.Parameter, path: Path | None) -> None:
    """Take from a file what the command line does not say."""
    if path is None:
        return
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.", USAGE) from error
    except ValueError as error:
        raise Failure(f"{path} is no TOML file: {error}.", USAGE) from error
    known = {item.name for item in ctx.command.params if item is not option and item.name != "help"}
    for name in told:
        if name.replace("-", "_") not in known:
            raise Failure(f"{path} has an unknown setting {name!r}; 'bentpipe pep run --help' "
                          "lists them, each without its dashes.", USAGE)  # fmt: skip
    ctx.default_map = {name.replace("-", "_"): value for name, value in told.items()}


def _place(
    _ctx: click.Context, _option: click.Parameter, text: str | None
) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise Failure(f"{text!r} is not an address and a port, such as {METRICS}.", USAGE)
    return host, int(port)


_settings = all_of(
    click.option("--config", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
        is_eager=True, expose_value=False, callback=_configured,
        help="Options from a TOML file; those of the command line go first."),
    click.option("--lan", required=True, metavar="IFACE", help="Interface towards the ends here."),
    click.option("--satellite", required=True, metavar="IFACE", help="Interface towards the link."),
    click.option("--speak", type=click.Choice(["tcp", "rwbp", "stp"]), default="tcp",
        show_default=True, help="What connections over the link speak; rwbp and stp only with "
        "another box that does."),
    click.option("--sockets", is_flag=True,
        help="Let connections end in the kernel's sockets: fast, with early opening and local "
        "ends (needs nftables)."),
    click.option("--opening", type=click.Choice(["late", "early"]),
        help="Answer a caller after or before whom it calls has answered (default: late, with "
        "sockets early)."),
    click.option("--end", type=click.Choice(["confirmed", "local"]),
        help="Acknowledge a FIN when all is delivered, or at once (default: confirmed, with "
        "sockets local)."),
    click.option("--strangers", type=click.Choice(["forward", "reset"]), default="forward",
        show_default=True, help="What to do with connections that began before."),
    click.option("--connections", type=click.IntRange(1, 100_000), default=1000, show_default=True,
        help="Connections that are split at once."),
    click.option("--buffer", type=click.IntRange(16_384, 1 << 28), default=2 << 20,
        show_default=True, metavar="OCTETS", help="Octets held of one direction of a connection."),
    click.option("--drain", type=click.FloatRange(0, 86_400), default=30.0, show_default=True,
        metavar="SECONDS", help="Time that open connections have to end."),
    click.option("--metrics", metavar="ADDRESS:PORT", callback=_place,
        help="Answer Prometheus and 'pep status' there (needs 'bentpipe[pep]')."),
    click.option("--log-level", type=click.Choice(["info", "warning"]), default="info",
        show_default=True, help="What to tell on standard error, as lines of JSON."),
)  # fmt: skip


@pep.command(
    epilog=examples(
        "pep run --lan eth0 --satellite eth1",
        "pep run --lan eth0 --satellite eth1 --opening early --metrics 127.0.0.1:9464",
        "pep run --lan eth0 --satellite eth1 --sockets",
        "pep run --config pep.toml",
        more="""\
pep.toml holds options by their names:
  lan = "eth0"
  satellite = "eth1"
  buffer = 4194304
Prints "ready" once it splits. The first SIGTERM or SIGINT leaves new connections whole and waits
for those that are open, the second one resets them.
Exit status: 143 or 130 after such a signal, 2 wrong usage, 3 the kernel cannot be set up.""",
    )
)
@_settings
def run(log_level: str, **settings: Any) -> None:
    """Split the TCP connections that this Linux host routes between two interfaces.

    Neither end notices: addresses and ports stay. What is not TCP, what was open before, and what
    cannot be split passes as through any router. The host has to route (net.ipv4.ip_forward), and
    the command needs CAP_NET_ADMIN, /dev/net/tun and iproute2. It sets two rules and two routes,
    and removes them; if it is killed, the host routes as before. With --sockets it needs nftables
    instead of /dev/net/tun, is as fast as the kernel, and acknowledges ends by itself. One runs in
    each network namespace.
    """
    from bentpipe_reference.pep.io import program
    from bentpipe_reference.pep.io.metrics import log_to

    if settings["metrics"] is not None:
        _need_library()
    if settings["lan"] == settings["satellite"]:
        raise Failure("--lan and --satellite name one interface; a box stands between two.", USAGE)
    log_to(sys.stderr, log_level)
    with explained(OSError), explained(ValueError, exit_code=USAGE):
        number = program.run(program.Settings(**settings), lambda: _say("ready"))
    raise click.exceptions.Exit(128 + number)


@pep.command(
    epilog=examples(
        "pep status",
        "pep status --at 192.0.2.1:9464 --json",
        more="Exit status: 0 it runs, 2 wrong usage, 3 nobody answers.",
    )
)
@click.option("--at", default=METRICS, show_default=True, metavar="ADDRESS:PORT", callback=_place,
              help="Where its metrics are.")  # fmt: skip
@json_option("Print an object.")
def status(at: tuple[str, int], as_json: bool) -> None:
    """What a box that runs with --metrics counts."""
    from bentpipe_reference.pep.io.metrics import ask

    from bentpipe_conformance.cli.output import output, plain_table, print_json

    _need_library()
    where = f"{at[0]}:{at[1]}"
    try:
        found = ask(where)
    except OSError as error:
        raise Failure(
            f"No box answers at {where} ({_why(error)}); start it with --metrics {where}."
        ) from error
    if as_json:
        print_json({name: int(value) for name, value in found.items()})
        return
    table = plain_table("number", "value")
    for name, value in found.items():
        table.add_row(name.removesuffix("_total").replace("_", " "), f"{value:.0f}")
    output().print(table)


def _why(error: OSError) -> str:
    """What the system says, without the words of libraries around it."""
    inner = getattr(error, "reason", error)
    return getattr(inner, "strerror", None) or str(inner)


def _need_library() -> None:
    if find_spec("prometheus_client") is None:
        raise Failure("Metrics need prometheus_client; run pip install 'bentpipe[pep]'.")


def _say(word: str) -> None:
    click.echo(word)
    sys.stdout.flush()

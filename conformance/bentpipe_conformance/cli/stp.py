"""``bentpipe stp``: the reference's STP endpoint as programs, a netcat for STP.

The only module of the command line that sees the reference's protocol code: here the reference is
not judged but run by the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from bentpipe_reference.stp.config import LEAST_MAX_SD, PATH_CLASSES, SD_OVERHEAD, StpConfig
from bentpipe_reference.stp.io import programs
from bentpipe_reference.stp.io.errors import StpIoError
from bentpipe_reference.stp.io.programs import Program, Result

from bentpipe_conformance.cli.descriptors import next_name, opened, standard, written
from bentpipe_conformance.cli.options import Option, all_of, examples, json_option
from bentpipe_conformance.cli.outcome import FAILED, USAGE, Failure, explained

if TYPE_CHECKING:
    from bentpipe_reference.stp.io.addresses import Place
    from rich.progress import TaskID

GLANCE_S = 0.2
"""Seconds between looks at the progress."""


@click.group(
    epilog=examples(
        "stp recv --listen 0.0.0.0:7253 copy.iso       on one host",
        "stp send image.iso sat.example:7253           on the other",
        "stp serve --listen 0.0.0.0:7253               echo 7, discard 9, chargen 19",
        "date | bentpipe stp echo sat.example:7253",
        more="Exit status: 0 the peer has acknowledged the end of the stream, 1 it has not, "
        "2 wrong usage,\n3 no socket, 130 interrupted.",
    )
)
def stp() -> None:
    """Speak the Satellite Transport Protocol, STP/1, over UDP or directly over IP.

    These commands run the reference endpoint on real sockets. ADDRESS:UDPPORT says where the
    other endpoint is; /SERVICEPORT behind it is the port in STP's own header.
    """


_settings = all_of(
    click.option(
        "--ip", "protocol", type=click.Choice(["253", "254"]),
        help="Directly over IP with this protocol number, as root; then no UDP ports.",
    ),
    click.option(
        "--max-sd", type=click.IntRange(LEAST_MAX_SD, 60_000), metavar="OCTETS",
        help="Most user data in a packet, both ways (default: what 1500 octets hold).",
    ),
    click.option(
        "--credit", type=click.IntRange(4, 1 << 20), default=2048, show_default=True,
        metavar="PACKETS", help="Packets the peer may be ahead of what has been read.",
    ),
    click.option(
        "--rate", type=click.FloatRange(1000), metavar="BIT/S",
        help="Send data no faster than this (default: as congestion control allows).",
    ),
    click.option(
        "--path-class", type=click.Choice(PATH_CLASSES), default="geo", show_default=True,
        help="Class of the path, for the first waits; vbdc for capacity assigned on demand.",
    ),
    click.option(
        "--initial-window", type=click.IntRange(1, 10), default=4, show_default=True,
        metavar="PACKETS", help="Congestion window at the start.",
    ),
    click.option(
        "--path-reorders", is_flag=True,
        help="The path changes the order of packets: do not report a gap at once.",
    ),
)  # fmt: skip
_destination = click.argument("destination", metavar="HOST:UDPPORT[/SERVICEPORT]")
_json = json_option("Print a summary as JSON.")


def _listen_option(metavar: str) -> Option:
    return click.option("--listen", required=True, metavar=metavar, help="Where to be called.")


def _config(
    host: str, protocol: str | None, max_sd: int | None, rate: float | None, path_reorders: bool,
    **settings: Any,
) -> StpConfig:  # fmt: skip
    # The reference counts 20 octets for the IP header; an MTU less by 20 makes it 40.
    longer = 20 if ":" in host else 0
    headers = 20 + longer + (0 if protocol else 8) + SD_OVERHEAD
    most = max_sd or 1500 - headers
    mtu = max(1500, most + headers) - longer
    return StpConfig(
        protocol=int(protocol or 17), max_sd=most, mtu=mtu, max_rate=rate,
        fifo=not path_reorders, **settings,
    )  # fmt: skip


def _place(text: str, protocol: str | None, *, listening: bool = False) -> Place:
    from bentpipe_reference.stp.io.addresses import parse_place

    with explained(ValueError, exit_code=USAGE):
        return parse_place(text, ports=protocol is None, any_port=listening)


@stp.command(
    epilog=examples(
        "stp serve --listen 0.0.0.0:7253",
        "stp serve --listen 192.0.2.1 --ip 253",
        more="""\
Prints "ready" once it listens. Lines on standard input:
  open ADDRESS UDPPORT SERVICEPORT [echo|discard|chargen [OCTETS]]
              call, and serve that connection; chargen ends after OCTETS
  close       end the streams of all connections that were called
  abort       abort them""",
    )
)
@_listen_option("HOST:UDPPORT")
@_settings
def serve(listen: str, **settings: Any) -> None:
    """Offer echo on port 7, discard on 9 and chargen on 19, until interrupted."""
    from bentpipe_reference.stp.io.serving import Server

    place = _place(listen, settings["protocol"], listening=True)
    with explained(StpIoError):
        server = Server(place, _config(place.host, **settings), _say)
    with contextlib.closing(server):
        _say(f"listening at {server.address}")
        click.echo("ready")
        sys.stdout.flush()
        with explained(StpIoError):
            server.run(None if sys.stdin is None else sys.stdin.fileno())
    raise click.exceptions.Exit(128 + (server.interrupted or 0))


@stp.command(
    epilog=examples(
        "stp send image.iso 192.0.2.1:7253",
        "tar c . | bentpipe stp send - 192.0.2.1:7253/9",
        "stp send image.iso 192.0.2.1 --ip 253",
    )
)
@click.argument("file", type=click.Path(allow_dash=True))
@_destination
@_settings
@_json
def send(file: str, destination: str, as_json: bool, **settings: Any) -> None:
    """Send FILE, or standard input if it is -, to a `bentpipe stp recv` or any discard service.

    The service port is 9 if none is given.
    """
    place = _place(destination, settings["protocol"])
    with opened(file, os.O_RDONLY) as descriptor:
        with explained(StpIoError):
            program = programs.dial(place, _config(place.host, **settings), programs.DEFAULT_PORT)
        with contextlib.closing(program):
            program.upload_from(descriptor)
            size = os.fstat(descriptor).st_size if file != "-" else 0
            result = _carry(program, file, size or None)
    _finish(result, as_json)


@stp.command(
    epilog=examples(
        "stp recv --listen 0.0.0.0:7253 copy.iso",
        "stp recv --listen 0.0.0.0:7253 | tar x",
        "stp recv --listen 0.0.0.0:7253 --out inbox",
    )
)
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@_listen_option("HOST:UDPPORT[/SERVICEPORT]")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path),
    help="Take one file after the other into this directory, until interrupted.",
)  # fmt: skip
@_settings
@_json
def recv(file: str | None, listen: str, out: Path | None, as_json: bool, **settings: Any) -> None:
    """Wait for one call and write what it sends to FILE, or to standard output.

    While it arrives, a file is called FILE.part. Success is reported to the sender only when all of
    it has been written. The service port is 9 if none is given.
    """
    if file is not None and out is not None:
        raise Failure("FILE and --out exclude each other; give one of them.", USAGE)
    if as_json and file is None and out is None:
        raise Failure("--json needs standard output for itself; give FILE or --out.", USAGE)
    place = _place(listen, settings["protocol"], listening=True)
    number = 0
    with explained(StpIoError):
        node = programs.serve_place(place, _config(place.host, **settings))
    with contextlib.closing(node):
        _say(f"listening at {node.place}")
        while True:
            number += 1
            target = str(next_name(out, number)) if out is not None else file
            with written(target) as (descriptor, finish):
                program = Program.called(node, place.service_port or programs.DEFAULT_PORT)
                program.download_to(descriptor, finish)
                result = _carry(program, target or "standard output", None)
            if out is None or program.interrupted:
                break
            if as_json:
                click.echo(json.dumps(result.as_dict()))
            else:
                _say(result.sentence)
    _finish(result, as_json)


@stp.command(
    epilog=examples(
        "stp echo 192.0.2.1:7253",
        "date | bentpipe stp echo 192.0.2.1:7253",
        "stp echo 192.0.2.1:7253/19 </dev/null",
    )
)
@_destination
@_settings
@_json
def echo(destination: str, as_json: bool, **settings: Any) -> None:
    """Connect standard input and output to a service, port 7 (echo) if none is given.

    With --json the summary goes to standard error.
    """
    place = _place(destination, settings["protocol"])
    with explained(StpIoError):
        program = programs.dial(place, _config(place.host, **settings), programs.DEFAULT_ECHO_PORT)
    with contextlib.closing(program):
        program.download_to(standard("output"), lambda: None)
        program.upload_from(standard("input"))
        with explained(StpIoError):
            result = program.run()
    if as_json:
        click.echo(json.dumps(result.as_dict()), err=True)
    _finish(result, as_json=False)


def _say(sentence: str) -> None:
    click.echo(f"bentpipe: {sentence}", err=True)


def _carry(program: Program, name: str, size: int | None) -> Result:
    """Run a transfer, with a bar on a terminal."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"), progress.BarColumn(), progress.DownloadColumn(),
        progress.TransferSpeedColumn(), progress.TimeRemainingColumn(),
    )  # fmt: skip
    hidden = not console.is_terminal
    # Drawn by our own loop: a thread that draws would share its processor.
    bar = progress.Progress(*columns, console=console, disable=hidden, auto_refresh=False)
    with bar, explained(StpIoError):
        if console.is_terminal:
            task = bar.add_task(os.path.basename(name), total=size)
            _glance(program, bar, task)
        result = program.run()
        if console.is_terminal:
            bar.update(task, completed=program.octets, refresh=True)
        return result


def _glance(program: Program, bar: Any, task: TaskID) -> None:
    bar.update(task, completed=program.octets, refresh=True)
    loop = program.node.loop
    loop.call_at(loop.clock() + GLANCE_S, lambda: _glance(program, bar, task))


def _finish(result: Result, as_json: bool) -> None:
    """The summary and the exit status."""
    if as_json:
        # Importing Rich takes long, which counts where an implementation is started for each lane.
        from bentpipe_conformance.cli.output import print_json

        print_json(result.as_dict())
    if result.interrupted:
        _say(result.sentence)
        raise click.exceptions.Exit(128 + result.interrupted)
    if not result.success:
        raise Failure(result.sentence, FAILED)
    if not as_json and sys.stderr.isatty():
        _say(result.sentence)

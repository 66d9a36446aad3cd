"""A campaign over the workers of a Dask cluster.

It is cut into slices with seeds of their own, so that for a number of conversations it is the same
on any cluster. A worker plays a slice as a shard is played on this machine, in a process or guest
of its own, and sends back the files that it has left.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.run.opening import load_link
from bentpipe_conformance.run.workplace import choose_workplace

from bentpipe_fuzz.campaign import shards
from bentpipe_fuzz.campaign.storage import Figures, Order, store_figures, stored, write

SLICE = 100
"""Conversations of a slice; what an interrupted campaign loses of each worker at most."""

SLICE_S = 60.0
"""Seconds of the wall clock that a slice takes at most where the time is limited."""

WAIT_S = 30.0
"""Seconds that a scheduler and the first worker have to answer."""

Files = dict[str, bytes]


def run(
    order: Order, bed: str, address: str, seconds: float | None, watch: shards.Watch
) -> tuple[Figures, list[Path]]:
    """Run a campaign on a cluster; return its figures and the folders of its slices.

    Args:
        order: the whole campaign.
        bed: where workers are to run the implementation.
        address: of Dask's scheduler.
        seconds: of the wall clock, after which no slice is begun.
        watch: see :data:`~bentpipe_fuzz.campaign.shards.Watch`; it is told of whole slices.

    Raises:
        BedError: there is no cluster, or the first slice cannot be played; when a later one cannot,
            the campaign ends with what it has.
    """
    figures, folders = Figures(), list[Path]()
    deadline = time.monotonic() + seconds if seconds else None

    def slices() -> Iterator[Order]:
        number, left = 0, order.examples
        while (left > 0 or not order.examples) and not (deadline and time.monotonic() > deadline):
            count = min(SLICE, left) if order.examples else SLICE
            yield replace(order, seed=order.seed + number, examples=count)
            number, left = number + 1, left - count

    with _client(address) as client:
        import distributed

        completed: Any = distributed.as_completed
        most = SLICE_S if deadline is not None else None
        waiting = slices()

        def submit() -> Any | None:
            item = next(waiting, None)
            return item and client.submit(play_slice, item, bed, most, pure=False)

        first = [submit() for _ in range(sum(client.nthreads().values()))]
        done = completed([future for future in first if future is not None])
        for future in done:
            if future.status != "finished":
                figures.problem = f"a worker could not play its slice: {future.exception()}"
                if not folders:
                    raise BedError(f"No slice was played: {figures.problem}.")
                break
            folder = Path(order.folder) / f"slice-{len(folders) + 1}"
            for name, octets in future.result().items():
                path = _inside(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path, octets)
            folders.append(folder)
            figures.add(Figures.load(folder))
            watch(figures, shards.sentences(stored([folder])))
            following = submit()
            if following is not None:
                done.add(following)
    return figures, folders


def _inside(folder: Path, name: str) -> Path:
    """Where a file of a worker belongs.

    Raises:
        BedError: not in its folder.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise BedError(f"A worker has sent a file called {name!r}.")
    return path


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """A client of a cluster that has workers.

    Raises:
        BedError: there is none.
    """
    try:
        import distributed
    except ImportError:
        raise BedError("Dask is not installed; `pip install 'bentpipe[scale]'`.") from None
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=WAIT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise BedError(f"Dask's scheduler at {address} does not answer: {error}.") from None
    try:
        client.wait_for_workers(1, timeout=WAIT_S)
        yield client
    except TimeoutError:
        raise BedError(f"{address} has no workers; start one: dask worker {address}.") from None
    finally:
        client.close()


def play_slice(order: Order, bed: str, seconds: float | None) -> Files:
    """Play a slice on the machine of a worker; the files that it leaves, by their names."""
    description, link = load_iut(order.iut), load_link(order.link)
    place = choose_workplace(bed, description, link)
    with tempfile.TemporaryDirectory(prefix="bentpipe-fuzz-") as name:
        folder = Path(name)
        error = place.report.timing_error if place.report else 0.0
        own = replace(order, folder=name, timing_error=error)
        figures, _ = shards.run_apart(own, place, 1, seconds, lambda _figures, _told: None)
        if not figures.conversations and figures.problem:
            raise BedError(figures.problem)
        store_figures(folder, figures.document())
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

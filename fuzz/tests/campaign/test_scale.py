"""Campaigns over a real Redis and a real cluster of two Dask workers."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.sharing import shared

pytestmark = pytest.mark.slow
READY_S = 20.0


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def answers(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody listens at a port."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        assert process.poll() is None
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nobody listens at port {port}")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    port = free_port()
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
               "--dir", str(tmp_path)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            answers(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("distributed", reason="pip install 'bentpipe[scale]'")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port),
            "--host", "127.0.0.1", "--no-dashboard"]  # fmt: skip
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
              "--no-dashboard", "--local-directory", str(tmp_path)]  # fmt: skip
    with ExitStack() as stack:
        for number, command in enumerate((dask, worker, worker)):
            log = stack.enter_context(open(tmp_path / f"{number}.log", "wb"))
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            if not number:
                answers(port, process)
        yield address


def campaign(*arguments: str) -> Any:
    command = [sys.executable, "-m", "bentpipe_conformance.cli.main", "fuzz", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_campaigns_share_conversations_by_redis(redis: str, tmp_path: Path) -> None:
    arguments = "stp-reference-simulated", "--examples", "60", "--share", redis, "--jobs", "2"
    done = campaign(*arguments, "--seed", "5", "--out", str(tmp_path / "one"))
    assert (done["conversations"], done["problem"], done["note"]) == (60, "", "")
    check = binding_of(suite_named("stp")).check
    assert len(shared(redis, "stp", check).fresh()) > 10
    # Those of the first shard reach the second, which has another seed.
    again = campaign(*arguments, "--seed", "9", "--out", str(tmp_path / "two"))
    assert again["note"] == ""


def test_campaign_over_two_workers_is_that_of_its_slices(cluster: str, tmp_path: Path) -> None:
    arguments = "stp-reference-simulated", "--examples", "120", "--seed", "5", "--dask", cluster
    done = campaign(*arguments, "--out", str(tmp_path / "out"))
    assert (done["conversations"], done["problem"]) == (120, "")
    alone = [
        campaign("stp-reference-simulated", "--examples", str(count), "--seed", str(seed),
                 "--out", str(tmp_path / str(seed)))
        for seed, count in ((5, 100), (6, 20))
    ]  # fmt: skip
    assert done["packets"] == sum(item["packets"] for item in alone)
    assert (tmp_path / "out" / "report.html").exists()

"""A short campaign against the reference host; see ``bentpipe_fuzz.tcp.host_machine``."""

from __future__ import annotations

from bentpipe_fuzz.tcp.host_machine import HostMachine
from hypothesis import settings

TestHost = HostMachine.TestCase
TestHost.settings = settings(
    max_examples=60, stateful_step_count=30, derandomize=True, deadline=None
)

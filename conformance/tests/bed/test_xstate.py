"""Processors with more registers than User-Mode Linux knows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bentpipe_conformance.bed import xstate
from bentpipe_conformance.bed.errors import BedError

FEW = "processor\t: 0\nflags\t\t: fpu avx512f xsave\n"
MANY = "processor\t: 0\nflags\t\t: fpu avx512f xsave amx_bf16 amx_tile amx_int8\n"
SHORT_STATE = """
import ctypes, os, signal
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 3 + [ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
child = os.fork()
if child == 0:
    libc.ptrace(0, 0, 0, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
state = ctypes.create_string_buffer(2696)
vector = Iovec(ctypes.addressof(state), 2696)
GETREGSET, SETREGSET, XSTATE, KILL = 0x4204, 0x4205, 0x202, 8
assert libc.ptrace(GETREGSET, child, XSTATE, ctypes.byref(vector)) == 0
vector.length = 2696
outcome = libc.ptrace(SETREGSET, child, XSTATE, ctypes.byref(vector))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(outcome)
"""


@pytest.mark.parametrize(("flags", "needed"), [(FEW, False), (MANY, True)])
def test_processor_with_amx_needs_the_library(tmp_path: Path, flags: str, needed: bool) -> None:
    processor = tmp_path / "cpuinfo"
    processor.write_text(flags)
    assert xstate.needed(processor) is needed


def test_processor_unknown_needs_nothing(tmp_path: Path) -> None:
    assert xstate.preload(tmp_path / "nothing") == {}


def test_library_without_a_compiler_the_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BedError, match="install gcc"):
        xstate.library()


@pytest.mark.skipif(not xstate.needed(), reason="this processor has no more registers")
def test_state_too_short_is_refused_bare_and_taken_with_the_library() -> None:
    told = []
    for more in ({}, xstate.preload()):
        done = subprocess.run(
            [sys.executable, "-IS", "-c", SHORT_STATE],
            env={**os.environ, **more}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        told.append(int(done.stdout))
    assert told == [-1, 0]

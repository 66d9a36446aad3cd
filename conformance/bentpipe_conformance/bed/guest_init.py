"""The first process of User-Mode Linux: makes the guest ready, runs one command, halts.

Run by the caller's own interpreter with one argument, the run's directory, which holds the
marshalled order. Uses the standard library only, and little of it.

A status file that is missing afterwards means that the bed failed, not the command.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import socket
import stat
import struct
import sys
import time
from typing import Any

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1
RB_POWER_OFF = 0x4321FEDC
NR_FINIT_MODULE = 313
TUN_NUMBERS = os.makedev(10, 200)
SEND_BUFFER = 4 << 20
CONGESTION = "/proc/sys/net/ipv4/tcp_{}_congestion_control"

libc = ctypes.CDLL(None, use_errno=True)


def main(run_dir: str) -> None:
    """Run the order of ``run_dir`` and halt."""
    try:
        with open(f"{run_dir}/order", "rb") as handle:
            order: dict[str, Any] = marshal.load(handle)
        prepare(run_dir, order)
        status = run(order)
        with open(f"{run_dir}/status.new", "w") as report:
            report.write(f"{status}\n")
        os.rename(f"{run_dir}/status.new", f"{run_dir}/status")
    except BaseException as error:  # for the console; to the host, a missing status says it
        print(f"bentpipe guest: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        libc.sync()
        libc.reboot(RB_POWER_OFF)


def prepare(run_dir: str, order: dict[str, Any]) -> None:
    """Mount what a program expects, load modules, bring ``lo`` up."""
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("tmpfs", f"{run_dir}/guest")
    os.mkdir(f"{run_dir}/guest/tmp")
    os.mknod(f"{run_dir}/guest/tun", stat.S_IFCHR | 0o600, TUN_NUMBERS)
    for path in order["modules"]:
        load_module(path)
    allow_congestion_controls()
    # Services without rights ask for send buffers of this size.
    with open("/proc/sys/net/core/wmem_max", "w") as most:
        most.write(str(SEND_BUFFER))
    make_groups(f"{run_dir}/guest/groups")
    bring_up("lo")
    # Timers are coarse until the first tick, which a virtual clock has not reached yet.
    time.sleep(order["settle"])


def mount(kind: str, where: str) -> None:
    """Mount a file system of ``kind``."""
    if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
        raise OSError(ctypes.get_errno(), f"cannot mount {kind} on {where}")


def make_groups(where: str) -> None:
    """Prepare control groups for implementations, if the kernel has them."""
    os.mkdir(where)
    if libc.mount(b"cgroup2", where.encode(), b"cgroup2", 0, None):
        return
    os.mkdir(f"{where}/implementations")
    for folder in (where, f"{where}/implementations"):
        with open(f"{folder}/cgroup.subtree_control", "w") as handle:
            handle.write("+memory +pids")


def load_module(path: str) -> None:
    """Insert one kernel module; one already there is fine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        if libc.syscall(NR_FINIT_MODULE, handle, b"", 0) and ctypes.get_errno() != 17:
            raise OSError(ctypes.get_errno(), f"cannot load the kernel module {path}")
    finally:
        os.close(handle)


def allow_congestion_controls() -> None:
    """Let namespaces choose every congestion control there is; by default only two are free."""
    with open(CONGESTION.format("available")) as available:
        names = available.read()
    with open(CONGESTION.format("allowed"), "w") as allowed:
        allowed.write(names)


def bring_up(interface: str) -> None:
    """Set an interface up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        name = interface.encode()
        told = fcntl.ioctl(handle, SIOCGIFFLAGS, struct.pack("16sH22x", name, 0))
        flags = struct.unpack_from("H", told, 16)[0] | IFF_UP
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH22x", name, flags))


def run(order: dict[str, Any]) -> int:
    """Run the command; its exit status, negative when a signal ended it."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.dup2(os.open(order["stdin"], os.O_RDONLY), 0)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            os.dup2(os.open(order["stdout"], flags, 0o600), 1)
            os.dup2(os.open(order["stderr"], flags, 0o600), 2)
            os.chdir(order["cwd"])
            os.execvpe(order["command"][0], order["command"], order["env"])
        except OSError as error:
            os.write(2, f"cannot run {order['command'][0]}: {error}\n".encode())
        os._exit(127)
    while True:
        reaped, status = os.wait()
        if reaped == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main(sys.argv[1])

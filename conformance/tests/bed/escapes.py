"""An implementation under test that attacks its tester; prints what came of each attempt.

Run as the implementation: ``python -IS escapes.py ATTEMPT @SECRET @EVIDENCE TESTER``
(a file that a command names would be part of the implementation). An attempt that
comes through prints what it has got hold of; one that is refused prints nothing.
"""

import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time

SIOCSIFFLAGS, SO_MARK = 0x8914, 36
SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET = 69, 70
libc = ctypes.CDLL(None, use_errno=True)
attempt, secret, evidence, tester = (word.lstrip("@") for word in sys.argv[1:5])
won: list[str] = []


def tries(what: str, action: object, *arguments: object) -> None:
    try:
        found = action(*arguments)  # type: ignore[operator]
    except (OSError, ValueError, MemoryError):
        return
    won.append(f"{what}: {str(found)[:60]}")


def called(number: int, *arguments: object) -> int:
    found = libc.syscall(number, *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


def read(path: str) -> str:
    with open(path, "rb") as file:
        return repr(file.read(40))


def write(path: str) -> str:
    with open(path, "ab") as file:
        return f"{file.write(b'0')} octet"


def host_files() -> None:
    for path in (
        secret,
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hostname",
        f"/proc/self/root{secret}",
        f"/proc/1/root{secret}",
        f"/proc/1/cwd/{secret}",
        f"/tmp/../..{secret}",
    ):
        tries(path, read, path)
    known = {"lib64", "lib", "root", "tmp", "dev", "proc", "usr", "work", "home", "opt", "nix"}
    strange = set(os.listdir("/")) - known
    assert not strange & {"etc", "var", "sys", "run", "boot"}, strange
    for path in ("/", "/lib", "/proc", "/dev", os.__file__, sys.executable):
        tries(f"write {path}", write, f"{path}/x" if os.path.isdir(path) else path)
    os.symlink("/../../../../etc/passwd", "/tmp/link")
    tries("link", read, "/tmp/link")
    fd = os.open("/tmp", os.O_RDONLY)
    tries("chroot", os.chroot, "/tmp")
    os.fchdir(fd)
    tries("back", read, "../" * 20 + "etc/passwd")


def its_evidence() -> None:
    tries("list", os.listdir, evidence)
    tries("read", read, f"{evidence}/run.json")
    tries("write", write, f"{evidence}/case.json")
    tries("below", write, f"{evidence}/cases/x/iut.pcapng")
    for number in range(3, 256):
        if str(number) not in sys.argv:
            try:
                kind = os.fstat(number).st_mode
            except OSError:
                continue
            won.append(f"descriptor {number}: {stat.filemode(kind)}")


def other_lanes() -> None:
    names = {name for _, name in socket.if_nameindex()}
    if names - {"lo"}:
        won.append(f"interfaces {names}")
    for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW)):
        tries("raw socket", socket.socket, family, kind, 1)
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tries("way out", made.connect, ("10.78.0.1", 9))
    tries("interface", fcntl.ioctl, made, 0x8914, struct.pack("16sH22x", b"lo", 0))
    with open("/proc/self/net/unix", "rb") as file:
        others = [line for line in file.read().split(b"\n")[1:] if line]
    won.extend(f"socket {line!r}" for line in others)
    tries("tun", os.open, "/dev/net/tun", os.O_RDWR)
    tries("queue", os.listdir, "/dev/mqueue")
    tries("shared memory", os.listdir, "/dev/shm")


def the_tester() -> None:
    if str(os.getpid()) != "2" or os.getppid() != 1:
        won.append(f"process {os.getpid()} of {os.getppid()}")
    seen = [name for name in os.listdir("/proc") if name.isdigit() and name != "2"]
    if seen:
        won.append(f"processes {seen}")
    for process in (1, int(tester), os.getppid()):
        tries(f"signal {process}", os.kill, process, signal.SIGUSR1)
        tries(f"trace {process}", called, 101, 16, process, 0, 0)
        for name in ("mem", "environ", "maps", "fd", "root", "cwd", "cmdline"):
            tries(f"/proc/{process}/{name}", read, f"/proc/{process}/{name}")
    tries("everybody", os.kill, -1, signal.SIGUSR1)
    tries("user 0", os.setuid, 0)
    tries("group 0", os.setgid, 0)
    tries("groups", os.setgroups, [0])
    tries("rights", lambda: called(126, struct.pack("Ii", 0x20080522, 0), b"\xff" * 24))
    tries("priority", os.nice, -5)
    tries("keys", called, 250, 0, -3, 1)


def the_clock() -> None:
    tries("set", time.clock_settime, time.CLOCK_REALTIME, 1e9)
    tries("settimeofday", called, 164, struct.pack("qq", 10**9, 0), 0)
    tries("adjtimex", called, 159, struct.pack("I204x", 1))
    tries("host name", socket.sethostname, "x")


def the_kernel() -> None:
    for name in (
        "sys/kernel/core_pattern",
        "sysrq-trigger",
        "self/oom_score_adj",
        "exitcode",
        "mconsole",
        "kcore",
        "kmsg",
        "sys/net/ipv4/ip_forward",
        "cmdline",
        "modules",
    ):
        tries(f"/proc/{name}", write if name != "self/oom_score_adj" else lower, f"/proc/{name}")
        if name != "self/oom_score_adj":
            tries(f"/proc/{name}", read, f"/proc/{name}")
    for numbers in ((1, 1), (1, 2), (8, 0), (98, 0), (10, 200)):
        tries(f"device {numbers}", os.mknod, "/tmp/d", stat.S_IFCHR | 0o666, os.makedev(*numbers))
    for name in ("mem", "kmem", "ubda", "sda", "vda", "console", "tty", "kvm", "fuse", "shm"):
        tries(f"/dev/{name}", os.open, f"/dev/{name}", os.O_RDONLY)
    tries("/dev", write, "/dev/x")
    tries("reboot", called, 169, 0xFEE1DEAD, 672274793, 0x01234567, 0)
    tries("module", called, 175, b"", 0, b"")
    tries("bpf", called, 321, 0, b"\0" * 64, 64)


def lower(path: str) -> str:
    with open(path, "w") as file:
        file.write("-1000")
    return "lowered"


def hostfs() -> None:
    def mounted(kind: bytes) -> int:
        if libc.mount(b"none", b"/tmp", kind, 0, b"/"):
            raise OSError(ctypes.get_errno(), "refused")
        return 0

    with open("/proc/self/mounts") as file:
        if "hostfs" in file.read():
            won.append("hostfs is mounted")
    for kind in (b"hostfs", b"tmpfs", b"proc", b"sysfs", b"cgroup2"):
        tries(f"mount {kind!r}", mounted, kind)
    for flags in (0x10000000, 0x10020000, 0x20000, 0x02000000):
        tries(f"unshare {flags:#x}", called, 272, flags)
        tries(f"clone {flags:#x}", called, 56, flags, 0, 0, 0, 0)
    tries("fsopen", called, 430, b"hostfs", 0)
    tries("unmount", lambda: libc.umount2(b"/proc", 2) and mounted(b"none"))
    tries("handle", called, 304, -100, b"\x08\0\0\0\x01\0\0\0" + bytes(8), 0)


def fork_bomb() -> None:
    children = 0
    try:
        while children < 5000:
            if os.fork() == 0:
                signal.pause()
            children += 1
    except OSError:
        pass
    if children > 200:
        won.append(f"{children} processes")


def memory_bomb() -> None:
    held = []
    try:
        while len(held) < 64:
            held.append(bytearray(16 << 20))
    except MemoryError:
        pass
    if len(held) > 16:
        won.append(f"{len(held) * 16} MB")


def memory_bomb_by_many() -> None:
    """Ends by the kernel's hand, or is refused; the tester lives."""
    for _ in range(5):
        try:
            if os.fork() == 0:
                held = [bytearray(b"x" * (16 << 20)) for _ in range(6)]
                signal.pause()
                del held
        except (OSError, MemoryError):
            break
    time.sleep(2)


def files_without_end() -> None:
    for number in range(200):
        try:
            with open(f"/tmp/{number}", "wb") as file:
                file.write(bytes(1 << 20))
        except OSError:
            break
    if number > 70:
        won.append(f"{number} MB of files")


def output_without_end() -> None:
    """One gigabyte, half of it to standard error."""
    piece = b"x" * 65535 + b"\n"
    for _ in range(1 << 13):
        os.write(1, piece)
        os.write(2, piece)
    os.write(2, b"\x1b]0;title\x07[bold]the end")


def administration() -> None:
    """Has the rights of an administrator of its own network, and of nothing else."""
    own = socket.socket(socket.AF_INET, socket.SOCK_RAW, 253)  # what it has asked for
    fcntl.ioctl(own, SIOCSIFFLAGS, struct.pack("16sh", b"lo", 1))
    own.setsockopt(socket.SOL_SOCKET, SO_MARK, 7)
    # Rights over this network would be rights over the machine's, were they of its first users.
    with open("/proc/self/uid_map") as file:
        if file.read().split() == ["0", "0", "4294967295"]:
            won.append("rights in the first user namespace")
    for option in (SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET):
        tries("busy polling", own.setsockopt, socket.SOL_SOCKET, option, 1 << 10)
    tries("a bigger user", os.setuid, 0)
    tries("another root", os.chroot, "/tmp")
    tries("a host name", socket.sethostname, "x")
    tries("a user namespace", called, 272, 0x10000000)
    tries("a network", called, 272, 0x40000000)
    tries("kernel parameters", write, "/proc/sys/net/core/somaxconn")


def limits() -> None:
    for which in (resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE):
        tries(f"limit {which}", resource.setrlimit, which, (1 << 30, 1 << 30))


print("ready", flush=True)
time.sleep(0.3)  # so that it is known to have been ready
{
    "host-files": host_files, "evidence": its_evidence, "other-lanes": other_lanes,
    "tester": the_tester, "clock": the_clock, "kernel": the_kernel, "hostfs": hostfs,
    "fork-bomb": fork_bomb, "memory-bomb": memory_bomb, "memory-bomb-by-many": memory_bomb_by_many,
    "files": files_without_end, "output": output_without_end, "limits": limits,
    "administration": administration,
}[attempt]()  # fmt: skip
if won:
    print("won", won, file=sys.stderr, flush=True)
    time.sleep(0.2)
    sys.exit(9)
print("refused", file=sys.stderr, flush=True)
select.select([], [], [], 600)

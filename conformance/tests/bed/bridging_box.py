"""The reference's box as a program that bridges two interfaces, for ports_scenario.py.

``python bridging_box.py SPEAK OUTER INNER``. It has no address: what leaves at a port bears the
Ethernet addresses that what came from the other one bore. Prints ``ready``.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import time
from typing import Literal, cast

from bentpipe_reference.pep.io.program import Settings, configured

ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING = 3, 263, 23
SO_RCVBUFFORCE, QUEUE = 33, 1 << 26  # a flood of SYNs arrives at once
IPV4 = b"\x08\x00"


def main(speak: str, *names: str) -> None:
    settings = Settings(
        lan=names[0], satellite=names[1], buffer=1 << 17,
        speak=cast("Literal['tcp', 'rwbp', 'stp']", speak),
    )  # fmt: skip
    config, parts = configured(settings, 1500)
    box = parts.box(config, parts, 1)
    ports = []
    for name in names:
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        port.bind((name, ETH_P_ALL))
        port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        port.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE)
        ports.append(port)
    beyond = [b"", b""]  # who is where, by the last frame that told
    print("ready", flush=True)
    while True:
        deadline = box.next_deadline()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        for arrived in select.select(ports, [], [], left)[0]:
            number = ports.index(arrived)
            with contextlib.suppress(OSError):  # one is not up yet
                frame = arrived.recv(2048)
                if frame[12:14] == IPV4:
                    beyond[number], beyond[1 - number] = frame[6:12], frame[:6]
                    total = int.from_bytes(frame[16:18], "big")
                    box.receive(number, frame[14 : 14 + total], time.monotonic())
                else:
                    ports[1 - number].send(frame)
        box.advance(time.monotonic())
        for number, packet in box.transmit(time.monotonic()):
            with contextlib.suppress(OSError):
                ports[number].send(beyond[number] + beyond[1 - number] + IPV4 + packet)


if __name__ == "__main__":
    main(*sys.argv[1:])

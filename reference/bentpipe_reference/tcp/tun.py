"""The TCP reference behind a TUN device: ``python -m bentpipe_reference.tcp.tun``."""

from __future__ import annotations

import os

from bentpipe_reference.common.tun import parser, serve
from bentpipe_reference.tcp.config import VARIANTS
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.subject import SUBJECT


def main() -> None:
    """Serve until standard input ends."""
    options = parser(__doc__)
    options.add_argument("--variant", choices=VARIANTS, default="sack-newreno-rfc")
    chosen = options.parse_args()
    setup = SUBJECT.variants[chosen.variant]
    seed = int.from_bytes(os.urandom(4))
    serve(chosen.fd, TcpHost(chosen.address, setup.config, seed, parts=setup.parts))


if __name__ == "__main__":
    main()

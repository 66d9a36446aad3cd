"""The RWBP reference behind a TUN device: ``python -m bentpipe_reference.rwbp.tun``."""

from __future__ import annotations

import os
from dataclasses import replace

from bentpipe_reference.common.tun import parser, serve
from bentpipe_reference.rwbp.links import make_host
from bentpipe_reference.rwbp.subject import SETUPS


def main() -> None:
    """Serve until standard input ends."""
    options = parser(__doc__)
    options.add_argument("--link-address", help="that on the link with a rate and a gateway")
    options.add_argument("--link-rate", type=float, help="bit/s of that link")
    options.add_argument("--gateway", help="IPv4 address of its gateway")
    chosen = options.parse_args()
    setup = SETUPS["rwbp1"]
    config = replace(
        setup.config, link_address=chosen.link_address, link_rate_bit_s=chosen.link_rate,
        gateway=chosen.gateway,
    )  # fmt: skip
    setup = replace(setup, config=config)
    serve(chosen.fd, make_host(chosen.address, setup, int.from_bytes(os.urandom(4))))


if __name__ == "__main__":
    main()

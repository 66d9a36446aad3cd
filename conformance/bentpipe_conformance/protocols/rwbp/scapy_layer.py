# scapy.contrib.description = Receiver Window Backpressure Protocol, version 1 (RWBP/1)
# scapy.contrib.status = loads

"""Receiver Window Backpressure Protocol, version 1 (RWBP/1), for Scapy.

Segments are Scapy's own ``TCP``; ``(253, bytes(RWBPOption()))`` is the option of a SYN (section
4.1), and ``IP()/UDP()/RWBPCredit()`` a credit frame of the gateway (section 9.4). The module
imports Scapy only.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy import fields
    from scapy.layers.inet import UDP
    from scapy.packet import Packet, bind_layers


class RWBPOption(Packet):
    """What stands behind kind and length of the option."""

    name = "RWBP option"
    fields_desc = (
        fields.XIntField("exid", 0x52574250), fields.BitField("version", 1, 4),
        fields.BitField("reserved", 0, 4), fields.ByteField("interval", 8),
        fields.ShortField("unit", 1460),
    )  # fmt: skip


class RWBPCredit(Packet):
    """What a gateway grants."""

    name = "RWBP credit frame"
    fields_desc = (
        fields.BitField("version", 1, 4), fields.BitField("type", 1, 4),
        fields.ByteField("queue", 0), fields.ShortField("epoch", 0),
        fields.IntField("arrived", 0), fields.IntField("limit", 0),
    )  # fmt: skip


bind_layers(UDP, RWBPCredit, sport=1021, dport=1021)

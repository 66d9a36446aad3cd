"""Loss recovery: one sender class per variant."""

from bentpipe_reference.tcp.config import Variant
from bentpipe_reference.tcp.recovery.newreno import NewRenoSender
from bentpipe_reference.tcp.recovery.reno import RenoSender
from bentpipe_reference.tcp.recovery.sack_newreno_hk99 import SackNewRenoHk99Sender
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.recovery.selective import SackRenoSender
from bentpipe_reference.tcp.sender import Sender

SENDERS: dict[Variant, type[Sender]] = {
    "reno": RenoSender,
    "newreno": NewRenoSender,
    "sack-reno": SackRenoSender,
    "sack-newreno-hk99": SackNewRenoHk99Sender,
    "sack-newreno-rfc": SackNewRenoRfcSender,
}

__all__ = [
    "SENDERS",
    "NewRenoSender",
    "RenoSender",
    "SackNewRenoHk99Sender",
    "SackNewRenoRfcSender",
    "SackRenoSender",
]

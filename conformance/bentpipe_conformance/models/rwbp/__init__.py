"""RWBP: how recorded transfers become input of its models."""

from bentpipe_conformance.models.binding import Binding, Form
from bentpipe_conformance.models.rejection import Module

RWBP_RECOVERY = Binding(
    protocol="rwbp-recovery",
    module=Module("rwbp-recovery", "TraceRwbpRecovery", "trace.cfg", "TraceLogs"),
    profiles={"rwbp1": {}},
    forms={
        "send": Form({"n": int}, ("SentNew",)),
        "again": Form({"n": int}, ("SentAgain",)),
        "ack": Form({"n": int, "held": list}, ("Acknowledged",)),
        "timeout": Form({}, ("TimedOut",)),
        "state": Form({"edge": int, "lost": list}, ("Observed",)),
    },
)

BINDINGS = (RWBP_RECOVERY,)

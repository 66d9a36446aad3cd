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

_COUNTED = {"f": int, "n": int}

RWBP_FLOW = Binding(
    protocol="rwbp-flow",
    module=Module("rwbp-flow", "TraceRwbpFlow", "trace.cfg", "TraceLogs"),
    profiles={"rwbp1": {}},
    forms={
        "receive": Form(_COUNTED, ("Received",)),
        "move": Form(_COUNTED, ("Moved",)),
        "edge": Form(_COUNTED, ("EdgeTold",)),
        "report": Form({**_COUNTED, "awaited": int}, ("Reported",)),
        "lost": Form(_COUNTED, ("Lost",)),
        "serve": Form({"f": int}, ("ServedNew",)),
        "again": Form({"f": int}, ("ServedAgain",)),
        "control": Form({}, ("Controlled",)),
        "pass": Form({}, ("PassedOn",)),
        "credit": Form({"n": int}, ("Credited",)),
        "leave": Form({}, ("Left",)),
        "consume": Form(_COUNTED, ("Consumed",)),
    },
    bounds={
        "flows": "Flows",
        "receive_buffer": "ReceiveBuffer",
        "send_buffer": "SendBuffer",
        "ip_queue": "IpQueue",
        "gateway_queue": "GatewayQueue",
        "window": "Window",
    },
)

BINDINGS = (RWBP_RECOVERY, RWBP_FLOW)

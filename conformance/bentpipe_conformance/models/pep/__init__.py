"""PEP/1: how what a box does becomes input of the model of split connections."""

from bentpipe_conformance.models.binding import Binding, Form
from bentpipe_conformance.models.rejection import Module

_COUNTED = {"d": int, "n": int}

SPLIT_CONNECTION = Binding(
    protocol="split-connection",
    module=Module("split-connection", "TraceSplitConnection", "trace.cfg", "TraceLogs"),
    profiles={"pep1": {}},
    forms={
        "permit": Form(_COUNTED, ("Permitted",)),
        "take": Form(_COUNTED, ("Took",)),
        "room": Form(_COUNTED, ("RoomTold",)),
        "deliver": Form(_COUNTED, ("Delivered",)),
        "probe": Form(_COUNTED, ("Probed",)),
        "confirm": Form(_COUNTED, ("Acknowledged",)),
        "fin": Form(_COUNTED, ("FinTaken",)),
        "end": Form(_COUNTED, ("EndSent",)),
        "ackfin": Form({"d": int}, ("EndAcknowledged",)),
        "reset": Form({"e": int}, ("WasReset",)),
        "fails": Form({"e": int}, ("GivenUp",)),
        "told": Form({"e": int}, ("WasTold",)),
        "over": Form({}, ("Over",)),
        "quiet": Form({}, ("Quiet",)),
    },
    bounds={"buffer": "Buffer"},
)

BINDINGS = (SPLIT_CONNECTION,)

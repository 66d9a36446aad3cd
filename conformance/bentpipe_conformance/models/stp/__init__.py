"""STP: how recorded events become input of its models."""

from bentpipe_conformance.models.stp.exchanges import STP_DATA
from bentpipe_conformance.models.stp.sessions import STP_CONN

BINDINGS = (STP_DATA, STP_CONN)

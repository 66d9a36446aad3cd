"""TCP endpoints, sans IO."""

from bentpipe_reference.tcp.config import VARIANTS, EndpointConfig, Variant
from bentpipe_reference.tcp.endpoint import Addresses, Endpoint
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.sending.variables import Event
from bentpipe_reference.tcp.states import State

__all__ = [
    "VARIANTS",
    "Addresses",
    "Endpoint",
    "EndpointConfig",
    "Event",
    "State",
    "TcpHost",
    "Variant",
]

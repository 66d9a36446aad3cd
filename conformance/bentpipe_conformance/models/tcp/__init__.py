"""TCP: how recorded and captured transfers become input of its models."""

from bentpipe_conformance.models.tcp.segments import SACK_NEWRENO

BINDINGS = (SACK_NEWRENO,)

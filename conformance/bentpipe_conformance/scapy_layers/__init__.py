"""Scapy layers of the protocols that bentpipe specifies; they use nothing else of bentpipe."""

"""Judging captures that the suite did not make: their quality first, then each connection."""

"""The suite of STP/1."""

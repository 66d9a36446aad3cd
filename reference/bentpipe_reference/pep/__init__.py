"""A box that splits TCP connections: PEP/1 without I/O."""

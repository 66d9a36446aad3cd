"""RWBP/1: TCP with windows of whole units, back-pressure and loss detection by order (ZB03)."""

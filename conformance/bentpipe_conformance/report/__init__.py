"""The report: one self-contained page made from a bundle's records and traces."""

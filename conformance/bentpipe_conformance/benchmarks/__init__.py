"""What the code costs: ratios and times against their targets, each one small function.

``python -m bentpipe_conformance.benchmarks`` (``make bench``) runs them in one process, so that
what is compared ran on the same machine in the same minute.
"""

"""The test bed: a link profile laid out by a real kernel, with captures on both sides of it.

The bed runs in one of three places, see :mod:`bentpipe_conformance.bed.place`. The modules that
also run inside User-Mode Linux import little, because starting Python there costs real time.
"""

"""Published experiments, repeated on the reference in virtual time.

An experiment is one :class:`~bentpipe_experiments.model.Experiment`: what is varied,
how one run is measured, and which published claims are judged. :mod:`.registry` lists them;
running, storing, resuming, drawing and printing are common to all.
"""

"""Mutants of the PEP reference, a module per group of requirements; each declares its own.

A mutant is a method in the place of one of a part of the reference, a subclass of a part, or a
function that reads packets, with the decorator :func:`mutant`; its title is the first line of its
docstring. One that is the true reference with other settings is declared by
:func:`mutant_setting`.
"""

from __future__ import annotations

from bentpipe_reference.common.mutation import Declarations

_DECLARED = Declarations("pep1")

MUTANTS = _DECLARED.mutants
"""Every mutant, in the order of declaration; the modules fill it when they are imported."""

mutant, mutant_setting = _DECLARED.mutant, _DECLARED.of_setup

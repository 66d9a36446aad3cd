"""Blind rounds of the PEP reference: faults written from the text alone, without the exam."""

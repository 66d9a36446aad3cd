"""Blind rounds of the RWBP reference: faults from the text, written before the exam was seen."""

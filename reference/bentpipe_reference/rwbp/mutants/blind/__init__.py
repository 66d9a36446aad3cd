"""Blind rounds of the RWBP reference: faults written from the text alone, without the exam."""

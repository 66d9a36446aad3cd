"""Blind rounds of the RWBP reference: faults written from the text, without a look at the exam."""

"""Blind rounds of the RWBP reference: faults written from the text, before the exam was looked at."""

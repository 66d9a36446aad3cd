"""Blind rounds of the STP reference: faults by people who had not seen the exam."""

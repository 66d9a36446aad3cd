"""Blind rounds of the TCP reference: faults by people who had not seen the exam."""

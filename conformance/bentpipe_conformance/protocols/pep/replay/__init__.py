"""Pairs the connections of both sides of a box, and follows each stream through it.

What a box knows is what has arrived at it; nothing of its inside is guessed.
"""

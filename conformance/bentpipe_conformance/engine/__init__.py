"""What all protocols have in common: cases drive, checkers judge, verdicts merge."""

"""What is true of any protocol: cases drive, checkers judge, verdicts merge."""

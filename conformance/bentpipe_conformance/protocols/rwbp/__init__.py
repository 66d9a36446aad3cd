"""Judging RWBP/1: tester, replay, checkers and cases; they stand on those of TCP."""

"""Running a suite against an implementation, and judging stored runs again."""

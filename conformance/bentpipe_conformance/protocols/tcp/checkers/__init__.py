"""One checker per wire-testable requirement, grouped as the requirements are."""

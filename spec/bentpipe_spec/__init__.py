"""What an implementation must do: requirements, profiles, conformance statements, vectors."""

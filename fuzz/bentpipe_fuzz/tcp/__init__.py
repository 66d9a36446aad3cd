"""TCP: strategies and a state machine of hosts."""

"""TCP: its campaign, strategies and a state machine of hosts."""

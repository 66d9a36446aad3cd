"""STP: its campaign, strategies of packets, and a flood of forged BEGINs."""

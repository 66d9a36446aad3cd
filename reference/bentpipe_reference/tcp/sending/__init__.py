"""The layers of the sender, each one concern: variables, congestion window, clocks."""

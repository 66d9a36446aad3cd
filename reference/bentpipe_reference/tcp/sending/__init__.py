"""The layers of the sender: variables, congestion window, clocks."""

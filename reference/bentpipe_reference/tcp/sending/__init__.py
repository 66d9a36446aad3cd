"""The layers below the sender: variables, congestion window."""

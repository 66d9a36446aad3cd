"""What a trace says about one TCP connection, seen from the implementation's side of the link."""

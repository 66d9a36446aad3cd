"""What the reference's protocols share."""

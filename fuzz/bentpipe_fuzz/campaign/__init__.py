"""What the campaigns of all protocols share."""

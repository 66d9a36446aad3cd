"""Files from anybody: whatever is in a capture, a bundle or a description ends as documented."""

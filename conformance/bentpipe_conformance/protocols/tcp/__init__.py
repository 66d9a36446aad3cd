"""What the engine needs to know of the suite snr, TCP loss recovery."""

"""TCP loss recovery over satellite paths (SNR)."""

"""What every protocol of the reference stands on."""

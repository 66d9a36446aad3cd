"""TCP, sans IO."""

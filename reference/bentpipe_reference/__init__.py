"""Reference implementation: wire codecs, sans-IO protocol machines and the virtual link."""

"""Implementations under test: descriptions, adapters and builds."""

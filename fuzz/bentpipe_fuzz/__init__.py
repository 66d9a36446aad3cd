"""Campaigns: conversations that nobody wrote down, judged, made small and played again."""

"""A standing campaign of hostile and unlucky STP peers, seeded and in virtual time.

``python -m bentpipe_fuzz.stp --help`` is its command; docs/howto/stp-campaign.rst says
what it looks for.
"""

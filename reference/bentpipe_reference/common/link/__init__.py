"""The satellite link: profiles as data, and the link in virtual time."""

from bentpipe_reference.common.link.profile import (
    Direction,
    LinkProfile,
    ProfileError,
    load_profiles,
)
from bentpipe_reference.common.link.virtual import VirtualLink

__all__ = ["Direction", "LinkProfile", "ProfileError", "VirtualLink", "load_profiles"]

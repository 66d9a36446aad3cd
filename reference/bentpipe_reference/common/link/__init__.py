"""The satellite link: profiles as data, and the link in virtual time."""

"""STP/1, the Satellite Transport Protocol: packets and what carries them."""

"""Cases that bring a box into the situations of PEP/1, from both its sides."""

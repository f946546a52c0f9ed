"""Rows as a format: JSON Lines, Arrow, packed binary, ranks and null bands."""

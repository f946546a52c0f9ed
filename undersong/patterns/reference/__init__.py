"""The reference matcher: plain backtracking over rows, which defines what a match is."""

"""Histories of a store's agents: the sweep over all of them, and what one of them says."""

"""Stores of conversations, scans, evaluations, agent histories and findings."""

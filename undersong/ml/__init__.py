"""Inference with the shipped models: n-grams, linear heads, static vectors, triage; NumPy only."""

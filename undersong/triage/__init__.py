"""Triage: the free probability that a judge would give a message any negative trait of .5 or more."""

"""Triage: the free probability that a judge would give a message any negative trait of .5 or more."""

from __future__ import annotations

from undersong.triage.model import SHIPPED, Triage, load_triage

__all__ = ["SHIPPED", "Triage", "load_triage"]

"""Tools for those who write rules: lint, cases, explanations, early warnings."""

"""The pattern language: expressions, row patterns, and rules compiled from YAML."""

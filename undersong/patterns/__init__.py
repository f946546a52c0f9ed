"""The pattern language: YAML rules over rows of scores, and what finds their matches."""

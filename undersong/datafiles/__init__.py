"""Typed readers of the data files in data/."""

"""A case as a folder that a person can read and a stranger can check."""

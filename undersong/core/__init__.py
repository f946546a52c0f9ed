"""Helpers without a domain: hashing, the manifest's canonical form, sanitised and counted text."""

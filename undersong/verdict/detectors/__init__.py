"""The detectors of a session's mechanisms: one module each."""

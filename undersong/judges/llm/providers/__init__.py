"""The providers: one module each."""

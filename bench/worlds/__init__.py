"""Score worlds that look like life, with planted patterns and look-alikes: ``python -m bench.worlds``."""

"""Rules over whole tables at once: arrays in, arrays out, the same matches as ``search``.

table (rows as arrays) → frames (the sequences of a rule) → starts (where a match is possible) → walk (the preferred
match of each start) → aggregates (measures) → skips (which matches stand).
"""

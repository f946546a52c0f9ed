"""Planning: what a run would read and what it would cost, before anything is spent."""

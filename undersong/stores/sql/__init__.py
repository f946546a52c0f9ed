"""The tables of a store in SQL, shared by the stores in SQLite and PostgreSQL."""

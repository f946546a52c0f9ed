"""The orchestration: from files to a case."""

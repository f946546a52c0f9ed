"""LLM judges: what is asked, how it is sent, and how an answer is checked."""

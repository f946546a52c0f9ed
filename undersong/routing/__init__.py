"""Routing: how deep and how wide each message is read, what a budget leaves out, and how much harm that may hold."""

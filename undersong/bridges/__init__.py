"""Bridges to the tools that people use: OpenTelemetry, MCP, pytest, Inspect and Scout."""

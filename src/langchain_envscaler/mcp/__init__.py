"""Environments served over MCP, and the clients that configurations name."""

"""Confined child processes that run environment code."""

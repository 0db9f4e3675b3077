"""Confined child processes, in which environment code and check code run."""

"""Synthesized environments: metadata, episodes, the sandbox they run in, the store that keeps them."""

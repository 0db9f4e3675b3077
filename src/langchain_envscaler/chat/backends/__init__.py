"""Engines that turn a prompt into a stream of text."""

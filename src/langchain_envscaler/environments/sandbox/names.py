"""Names that the host and its children share."""

__all__ = ["MODULE_NAME"]

MODULE_NAME = "envscaler_environment"
"""The name under which an environment's code is a module, in every child.

Pickled instances of its classes refer to it.
"""

"""The errors that this package raises: one small tree under :class:`EnvScalerError`.

Every message says what was expected, what was found, and what to do about it, in one line.
"""

__all__ = ["DataError", "EnvScalerError", "InfrastructureError", "LimitError", "NotFoundError", "UsageError"]


class EnvScalerError(Exception):
    """Base class of every error that the package raises on purpose."""


class UsageError(EnvScalerError):
    """The caller asked for something that cannot be done as asked (the command line exits with 2)."""


class NotFoundError(UsageError, LookupError):
    """A name that nothing answers to: an environment, a task, a tool, an episode, a thread, a model."""


class DataError(UsageError, ValueError):
    """A file or a record that does not have the expected form."""


class LimitError(UsageError):
    """As many of something are in use as are allowed; the message names the limit."""


class InfrastructureError(EnvScalerError):
    """Something that the work stands on failed: a process, a store, a server. Never a low score."""

"""What a host asks of a zygote over the control socket, and what it is answered."""

import struct

__all__ = ["END", "FORK", "FORK_SEEDED", "REAP", "REPLY", "REQUEST"]

REQUEST, REPLY = struct.Struct("=ci"), struct.Struct("=i")
"""A request is a command and a process id (0 where none is meant); a reply is one number."""

FORK, FORK_SEEDED = b"F", b"S"
"""Fork a child, for an episode without or with a seed; its end of a socket pair comes with the request.
The reply is its process id."""

END = b"E"
"""Kill and reap a child. There is no reply."""

REAP = b"R"
"""Kill and reap a child. The reply is how it ended: an exit code, or minus the number of a signal."""

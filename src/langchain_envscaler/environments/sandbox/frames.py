"""Frames between the host and a child: a JSON message and raw bytes, each with its length before it.

The host reads the message as JSON and hands the bytes on unread; only a child ever looks into them.
"""

import json
import struct
from typing import Any

__all__ = ["HEADER", "dumps", "frame"]

HEADER = struct.Struct("!II")

# One encoder for all messages: json.dumps with any option builds a new one each time.
dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def frame(message: Any, blob: bytes = b"") -> bytes:
    """A message and its bytes as they travel. A lone surrogate in a text travels too."""
    text = dumps(message).encode("utf-8", "surrogatepass")
    return b"".join((HEADER.pack(len(text), len(blob)), text, blob))

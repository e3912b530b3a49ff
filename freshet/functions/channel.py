"""Frames between the two sides of an isolated feature function.

Data channel, one per serving process: the parent sends CALL frames, the process answers READY once,
then for each call one RESULT frame per key, in order. Control channel, one per supervisor: commands
of one byte, answered by a line of JSON, with the parent's end of a data channel attached.
"""

from __future__ import annotations

import socket
import struct
from enum import IntEnum

HEAD = struct.Struct("<BI")
"""Kind of the frame and length of its body."""

MAX_RESULT_BYTES = 64 << 20
"""Largest packed value of one key that the worker hands over."""


class Frame(IntEnum):
    """Kinds of frames on a data channel."""

    CALL_BATCH = 1
    """Parent: compute these keys together if the function can."""
    CALL_SINGLY = 2
    """Parent: compute these keys one by one."""
    READY = 3
    """Serving process: the function is loaded."""
    RESULT = 4
    """Serving process: the packed response item of the next key."""
    FALLBACK = 5
    """Serving process: computing together failed, keys now follow one by one."""


class Command:
    """Commands to the supervisor."""

    START = b"S"
    """Replace the serving process; the one before is dead, or is to die at once."""
    HUNG = b"H"
    """Replace the serving process, which hangs; have it print its stack first."""


def send_frame(channel: socket.socket, kind: Frame, body: bytes = b"") -> None:
    """Sends one frame."""
    if len(body) < 1 << 16:
        channel.sendall(HEAD.pack(kind, len(body)) + body)
    else:
        channel.sendall(HEAD.pack(kind, len(body)))
        channel.sendall(body)


def receive_exactly(channel: socket.socket, length: int) -> bytes | None:
    """Receives length bytes; None if the other side has closed."""
    data = bytearray(length)
    view, received = memoryview(data), 0
    while received < length:
        count = channel.recv_into(view[received:])
        if count == 0:
            return None
        received += count
    return bytes(data)

"""The frames in which a traced function makes values: their variables name these values.

Generated code uses the names. A frame keeps its variables after its function has returned, so the frames
in which values are made are kept until the trace ends, and read then. A variable that gets another value
loses the old one; therefore a frame is also read when its code has moved to another line or round a loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from symad.core.following import Replaced, stand_ins
from symad.core.graph import Node
from symad.core.identifiers import is_variable
from symad.core.users_line import is_users_code
from symad.ops.arrays.sources import Constant, Input


class Frames:
    """The user's frames in which values are made while a function is traced."""

    def __init__(self, node_of: Callable[[object], Node | None]) -> None:
        """``node_of``: the node for which a variable's value stands; None for other values."""
        self._node_of = node_of
        self._places: dict[FrameType, tuple[int, int]] = {}
        """For each frame its line and instruction when it was read last."""
        self._depths: dict[FrameType, int] = {}
        self._unread: dict[FrameType, None] = {}
        """The frames in which values were made since `follow` read them."""
        self._found: dict[Node, tuple[bool, int, str]] = {}

    def note(self) -> None:
        """Note the user's frame that makes a value now."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not _has_names(frame):
            frame = frame.f_back
        if frame is None:
            return
        place, before = (frame.f_lineno, frame.f_lasti), self._places.get(frame)
        if before is None:
            self._depths[frame] = _depth(frame)
        if before is None or place[0] != before[0] or place[1] <= before[1]:
            self._read(frame)
        self._places[frame] = place
        self._unread[frame] = None

    def follow(self, replaced: Replaced) -> None:
        """Give the names of nodes to those that stand for them, such as nodes of a loop's body."""
        for frame in self._unread:
            self._read(frame)
        self._unread.clear()
        for node, made in stand_ins(self._found, replaced):
            self._found.setdefault(made, self._found[node])

    def names(self) -> dict[Node, str]:
        """The name of each value that a variable holds or held; called once, at the end of the trace."""
        for frame in self._places:
            self._read(frame)
        for frames in (self._places, self._depths, self._unread):
            frames.clear()
        return {node: name for node, (_, _, name) in self._found.items()}

    def _read(self, frame: FrameType) -> None:
        """Note what the variables of a frame hold.

        Of several names of a value, that of the outermost function is used, and that of a parameter only
        if there is no other.
        """
        depth, found = self._depths[frame], self._found
        parameters = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        for name, value in frame.f_locals.items():
            node = self._node_of(value)
            if node is None or isinstance(node.op, (Input, Constant)) or not is_variable(name):
                continue
            rank = name in parameters, depth
            if node not in found or rank < found[node][:2]:
                found[node] = *rank, name


def _has_names(frame: FrameType) -> bool:
    """True if the variables of a frame have names for readers: those of users and of symad's models."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.startswith("symad.models.") if module.startswith("symad.") else is_users_code(frame)


def _depth(frame: FrameType) -> int:
    """The number of frames around a frame."""
    count, around = 0, frame.f_back
    while around is not None:
        count, around = count + 1, around.f_back
    return count

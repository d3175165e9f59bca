"""The frames in which a traced function makes values: their variables name these values.

Generated code uses the names. A frame keeps its variables after its function has returned, so the frames
in which values are made are kept until the trace ends, and read then. A variable that gets another value
loses the old one; therefore a frame is also read when its code has moved to another line or round a loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType

from symad.core.following import Replaced, stand_ins
from symad.core.graph import Node
from symad.core.identifiers import is_variable
from symad.ops.basic.sources import Constant, Input
from symad.tracing.users_line import is_users_code


class FrameState:
    """A frame while values are made in it: where it was read last, and what its variables held then."""

    __slots__ = ("depth", "held", "instruction", "line")

    def __init__(self, depth: int) -> None:
        """``depth``: the number of frames around the frame. It has not been read yet."""
        self.depth = depth
        self.line = self.instruction = -1
        self.held: dict[str, Node] = {}


class Frames:
    """The user's frames in which values are made while a function is traced.

    They are found and read at every value, so the time counts: what a module's name and a line's number are
    is determined once for each code object and instruction, and a variable is noted only if it has changed.
    """

    def __init__(self, kind: type, node_of: Callable[[object], Node | None]) -> None:
        """``node_of``: the node for which a value stands, a value of the class ``kind``."""
        self._kind = kind
        self._node_of = node_of
        self._places: dict[FrameType, FrameState] = {}
        self._unread: dict[FrameType, None] = {}
        """The frames in which values were made since `follow` read them."""
        self._found: dict[Node, tuple[bool, int, str]] = {}
        self._with_names: dict[int, bool] = {}
        self._lines: dict[tuple[int, int], int] = {}
        self._codes: list[CodeType] = []
        """The code objects whose addresses are keys of these two; none is freed, so addresses stay unique."""

    def note(self) -> None:
        """Note the user's frame that makes a value now."""
        frame: FrameType | None = sys._getframe(2)
        with_names = self._with_names
        while frame is not None:
            code = id(frame.f_code)
            named = with_names.get(code)
            if named is None:
                named = with_names[code] = _has_names(frame)
                self._codes.append(frame.f_code)
            if named:
                break
            frame = frame.f_back
        else:
            return
        instruction = frame.f_lasti
        line = self._lines.get((code, instruction))
        if line is None:
            line = self._lines[code, instruction] = frame.f_lineno
        place = self._places.get(frame)
        if place is None:
            place = self._places[frame] = FrameState(_depth(frame))
        if line != place.line or instruction <= place.instruction:
            self._read(frame, place)
        place.line, place.instruction = line, instruction
        self._unread[frame] = None

    def follow(self, replaced: Replaced) -> None:
        """Give the names of nodes to those that stand for them, such as nodes of a loop's body."""
        for frame in self._unread:
            self._read(frame, self._places[frame])
        self._unread.clear()
        for node, made in stand_ins(self._found, replaced):
            self._found.setdefault(made, self._found[node])

    def names(self) -> dict[Node, str]:
        """The name of each value that a variable holds or held; called once, at the end of the trace."""
        for frame, place in self._places.items():
            self._read(frame, place)
        for table in (self._places, self._unread, self._with_names, self._lines):
            table.clear()
        self._codes.clear()
        return {node: name for node, (_, _, name) in self._found.items()}

    def _read(self, frame: FrameType, place: FrameState) -> None:
        """Note what the variables of a frame hold.

        Of several names of a value, that of the outermost function is used, and that of a parameter only
        if there is no other. A parameter of symad's models names what the user gave, which he did not name.
        """
        found, held, kind = self._found, place.held, self._kind
        parameters: tuple[str, ...] | None = None
        for name, value in _variables(frame):
            if value.__class__ is not kind:
                continue
            node = self._node_of(value)
            if node is None or held.get(name) is node:
                continue
            held[name] = node
            if isinstance(node.op, (Input, Constant)) or not is_variable(name):
                continue
            if parameters is None:
                parameters = frame.f_code.co_varnames[: frame.f_code.co_argcount]
            rank = name in parameters, place.depth
            if rank[0] and str(frame.f_globals.get("__name__", "")).startswith("symad.models."):
                continue
            if node not in found or rank < found[node][:2]:
                found[node] = *rank, name


CELLS_CRASH = (3, 13) <= sys.version_info < (3, 13, 2)
"""Whether Python crashes where a variable of a comprehension is a cell elsewhere in its code (gh-128396)."""


def _variables(frame: FrameType) -> Iterable[tuple[str, object]]:
    """The variables of a frame, without those by whose reading Python would crash."""
    variables = frame.f_locals
    if not CELLS_CRASH:
        return variables.items()
    return [(name, variables[name]) for name in variables if name not in frame.f_code.co_cellvars]


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

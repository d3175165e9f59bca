"""The layout of a score's arguments in its kernels: the fields of ScoreArgs, and their summaries.

Arrays are passed as pointers with their sizes. For an array that a mask reads, kernels also get the minima
and maxima of every `CHUNK` entries along the tiled axis, so that a tile is classified from a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from symad.numeric.pairs.scores import LOOPS, B, H, I, J, Load, Score

CHUNK = 32  # entries of a mask's array that are summarized by one minimum and one maximum


def tiled_axis(load: Load) -> int | None:
    """The axis of a mask's array that runs along rows or keys, if the index is simple.

    None if every index is b or h, or if the index does not consist of different loop symbols with at
    most one of i and j among them.
    """
    if not _plain(load):
        return None
    return next((axis for axis, e in enumerate(load.index) if e in (I, J)), None)


def _plain(load: Load) -> bool:
    distinct = len(set(load.index)) == len(load.index) and set(load.index) <= set(LOOPS)
    return distinct and not {I, J} <= set(load.index)


def extreme_key(load: Load) -> str | None:
    """The name of an array's extremes; None if its values are known per block."""
    if _plain(load):
        axis = tiled_axis(load)
        return None if axis is None else f"{load.name}_{axis}"
    return None if blockwise(load) else f"{load.name}_all"


def blockwise(load: Load) -> bool:
    """Whether every index depends on b and h only, and on no other array."""
    return all(e.free_symbols <= {B, H} for e in load.index)


class Holds(Enum):
    """The kinds of contents of a field of ScoreArgs."""

    ARRAY = "the pointer to a parameter"
    NUMBER = "a parameter"
    SIZE = "the length of an axis of a parameter"
    EXTREMES = "the pointer to minima or maxima"
    NOTHING = "nothing: a struct in C has a field"


@dataclass(frozen=True)
class ScoreField:
    """A field of ScoreArgs.

    Attributes:
        name: the name in C; p_ pointers, v_ numbers, n_ sizes, lo_ and hi_ extremes.
        holds: the kind of its contents.
        integer: whether its numbers, or those it points to, are integers.
        parameter: the name of the parameter it belongs to.
        axis: the axis of the parameter, for a size.
    """

    name: str
    holds: Holds
    integer: bool = True
    parameter: str = ""
    axis: int = 0

    @property
    def is_pointer(self) -> bool:
        """Whether the field contains an address."""
        return self.holds in (Holds.ARRAY, Holds.EXTREMES)

    def dtype(self, real: str) -> str:
        """Its type in NumPy; real numbers are "float" or "double" in C."""
        if self.is_pointer:
            return "<u8"
        return "<i4" if self.integer else {"float": "<f4", "double": "<f8"}[real]


def args_fields(score: Score) -> tuple[ScoreField, ...]:
    """The fields of ScoreArgs in their order in memory."""
    fields = []
    read = {load.name for load in score.loads}
    for p in score.parameters:
        if p.ndim == 0:
            fields.append(ScoreField(f"v_{p.name}", Holds.NUMBER, p.integer, p.name))
        elif p.name in read:
            fields.append(ScoreField(f"p_{p.name}", Holds.ARRAY, p.integer, p.name))
            fields += [
                ScoreField(f"n_{axis}_{p.name}", Holds.SIZE, True, p.name, axis) for axis in range(p.ndim)
            ]
    integer = {p.name: p.integer for p in score.parameters}
    owners = {extreme_key(load): load.name for load in score.reads(score.mask)}
    fields += [
        ScoreField(f"{end}_{key}", Holds.EXTREMES, integer[name], name)
        for key, name in owners.items() if key is not None
        for end in ("lo", "hi")
    ]  # fmt: skip
    return tuple(fields) or (ScoreField("unused", Holds.NOTHING),)


def args_struct(fields: Sequence[ScoreField]) -> str:
    """The C declaration of ScoreArgs."""
    lines = []
    for field in fields:
        number = "int" if field.integer else "Real"
        lines.append(f"  const {number}* {field.name};" if field.is_pointer else f"  {number} {field.name};")
    return "\n".join(["struct ScoreArgs {", *lines, "};"])

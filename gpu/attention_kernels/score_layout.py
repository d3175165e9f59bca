"""How the arguments of a score reach its kernels: the fields of ScoreArgs, and their summaries.

Arrays arrive as pointers with their sizes. Of an array that a mask reads, kernels also see minima
and maxima of every `CHUNK` entries along the tiled axis, so that a tile is classified from a few
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.gpu.sympy_to_cuda.printer import Style
from symad.numeric.pairs.scores import LOOPS, B, H, I, J, Load, Score

CHUNK = 32  # entries of an array that a mask reads, summarised by one minimum and maximum


def tiled_axis(load: Load) -> int | None:
    """The axis of a mask's array that runs along rows or keys, if it is read plainly.

    None if every index is b or h, or if the index is not made of different loop symbols with at
    most one of i and j among them.
    """
    if not _plain(load):
        return None
    return next((axis for axis, e in enumerate(load.index) if e in (I, J)), None)


def _plain(load: Load) -> bool:
    distinct = len(set(load.index)) == len(load.index) and set(load.index) <= set(LOOPS)
    return distinct and not {I, J} <= set(load.index)


def extreme_key(load: Load) -> str | None:
    """The name of an array's extremes, or None where its values are known per block."""
    if _plain(load):
        axis = tiled_axis(load)
        return None if axis is None else f"{load.name}_{axis}"
    return None if blockwise(load) else f"{load.name}_all"


def blockwise(load: Load) -> bool:
    """Whether every index is known per block (b, h) without another array read."""
    return all(e.free_symbols <= {B, H} for e in load.index)


def args_layout(score: Score, style: Style) -> np.dtype[Any]:
    """The fields of ScoreArgs: p_ pointers, v_ numbers, n_ sizes, lo_ and hi_ extremes."""
    real = np.float32 if style.real == "float" else np.float64
    fields: list[tuple[str, Any]] = []
    read = {load.name for load in score.loads}
    for p in score.parameters:
        if p.ndim == 0:
            fields.append((f"v_{p.name}", np.int32 if p.integer else real))
        elif p.name in read:
            fields.append((f"p_{p.name}", np.uint64))
            fields += [(f"n_{axis}_{p.name}", np.int32) for axis in range(p.ndim)]
    keys = dict.fromkeys(k for k in map(extreme_key, score.reads(score.mask)) if k is not None)
    fields += [(f"{end}_{key}", np.uint64) for key in keys for end in ("lo", "hi")]
    return np.dtype(fields or [("unused", np.int32)], align=True)


def args_struct(layout: np.dtype[Any], score: Score) -> str:
    """The C declaration of ScoreArgs."""
    integer = {p.name for p in score.parameters if p.integer}
    lines = []
    for name in layout.names or ():
        kind, _, key = name.partition("_")
        owner = key if kind in "pv" else key.rpartition("_")[0]
        number = "int" if owner in integer or kind in ("n", "unused") else "Real"
        pointer = kind in ("p", "lo", "hi")
        lines.append(f"  {'const ' if pointer else ''}{number}{'*' if pointer else ''} {name};")
    return "\n".join(["struct ScoreArgs {", *lines, "};"])

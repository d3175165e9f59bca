"""The tile shapes of the attention kernels, by kind of pass, element type and head dim."""

from __future__ import annotations

from dataclasses import dataclass

HALF, TF32, PLAIN, DOUBLE = "half", "tf32", "plain", "double"
FORWARD, BACKWARD_Q, BACKWARD_KV = "forward", "backward_q", "backward_kv"
DIAGONALS = "diagonals"
TANGENT, SECOND_Q, SECOND_KV = "tangent", "second_q", "second_kv"
SECOND_ORDER = (TANGENT, SECOND_Q, SECOND_KV)


@dataclass(frozen=True)
class TileShape:
    """A tile shape: a block owns 16 ``mt`` ``warps`` rows, and iterates over tiles of ``span`` rows.

    Attributes:
        warps: the warps of a block.
        mt: blocks of 16 rows per warp.
        span: the rows of the tiles that a block iterates over.
        part: the number of those rows that are in registers at once.
        stages: the number of buffers for such tiles, 1 or 2.
        min_blocks: the number of blocks that should fit on one multiprocessor.
    """

    warps: int
    mt: int
    span: int
    part: int
    stages: int = 2
    min_blocks: int = 1


# Tile shapes from the fastest on, by kind, family of the element and largest head dim.
SHAPES: dict[tuple[str, str, int], tuple[TileShape, ...]] = {
    (FORWARD, HALF, 64): (TileShape(4, 2, 64, 64, 2, 2),),
    (FORWARD, HALF, 128): (TileShape(4, 2, 64, 64, 2, 2), TileShape(8, 1, 64, 64), TileShape(4, 1, 32, 32)),
    (FORWARD, HALF, 256): (TileShape(8, 1, 32, 32), TileShape(4, 1, 32, 32, 1), TileShape(2, 1, 16, 16, 1)),
    (FORWARD, TF32, 64): (TileShape(8, 1, 64, 32), TileShape(4, 1, 32, 32)),
    (FORWARD, TF32, 128): (TileShape(8, 1, 32, 16), TileShape(4, 1, 16, 16)),
    (FORWARD, TF32, 256): (TileShape(4, 1, 16, 16), TileShape(2, 1, 16, 16, 1)),
    (FORWARD, DOUBLE, 64): (TileShape(8, 1, 32, 32), TileShape(4, 1, 16, 16)),
    (FORWARD, DOUBLE, 128): (TileShape(4, 1, 32, 16), TileShape(4, 1, 16, 16, 1), TileShape(2, 1, 16, 16, 1)),
    (FORWARD, DOUBLE, 256): (TileShape(4, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (BACKWARD_Q, HALF, 64): (TileShape(4, 2, 64, 32, 2, 2), TileShape(8, 1, 64, 64)),
    (BACKWARD_Q, HALF, 128): (
        TileShape(4, 2, 32, 32, 2, 2), TileShape(8, 1, 64, 64), TileShape(8, 1, 32, 32),
    ),
    (BACKWARD_Q, HALF, 256): (TileShape(4, 1, 32, 32), TileShape(2, 1, 16, 16)),
    (BACKWARD_Q, TF32, 64): (TileShape(8, 1, 64, 32), TileShape(4, 1, 16, 16)),
    (BACKWARD_Q, TF32, 128): (TileShape(4, 1, 32, 16), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_Q, TF32, 256): (TileShape(4, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (BACKWARD_Q, DOUBLE, 64): (TileShape(4, 1, 32, 16), TileShape(2, 1, 16, 16)),
    (BACKWARD_Q, DOUBLE, 128): (TileShape(4, 1, 16, 16, 1), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_Q, DOUBLE, 256): (TileShape(2, 1, 16, 16, 1),),
    (BACKWARD_KV, HALF, 64): (TileShape(4, 2, 64, 32, 2, 2), TileShape(8, 1, 64, 64)),
    (BACKWARD_KV, HALF, 128): (TileShape(8, 1, 64, 32), TileShape(8, 1, 32, 32)),
    (BACKWARD_KV, HALF, 256): (TileShape(4, 1, 32, 32), TileShape(2, 1, 16, 16)),
    (BACKWARD_KV, TF32, 64): (TileShape(8, 1, 32, 16), TileShape(4, 1, 16, 16)),
    (BACKWARD_KV, TF32, 128): (TileShape(4, 1, 32, 16), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_KV, TF32, 256): (TileShape(4, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (BACKWARD_KV, DOUBLE, 64): (TileShape(4, 1, 32, 16), TileShape(2, 1, 16, 16)),
    (BACKWARD_KV, DOUBLE, 128): (TileShape(4, 1, 16, 16, 1), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_KV, DOUBLE, 256): (TileShape(2, 1, 16, 16, 1),),
    (DIAGONALS, HALF, 64): (TileShape(4, 1, 64, 64, 1, 2),),
    (DIAGONALS, HALF, 128): (TileShape(4, 1, 64, 64, 1, 2), TileShape(4, 1, 64, 64, 1)),
    (DIAGONALS, HALF, 256): (TileShape(4, 1, 64, 64, 1), TileShape(2, 1, 32, 32, 1)),
    (DIAGONALS, TF32, 64): (TileShape(4, 1, 32, 32, 1, 2), TileShape(2, 1, 32, 32, 1)),
    (DIAGONALS, TF32, 128): (TileShape(4, 1, 32, 32, 1), TileShape(2, 1, 32, 32, 1)),
    (DIAGONALS, TF32, 256): (TileShape(2, 1, 32, 32, 1), TileShape(1, 1, 32, 32, 1)),
    (DIAGONALS, DOUBLE, 64): (TileShape(4, 1, 32, 32, 1), TileShape(2, 1, 32, 32, 1)),
    (DIAGONALS, DOUBLE, 128): (TileShape(2, 1, 32, 32, 1), TileShape(1, 1, 32, 32, 1)),
    (DIAGONALS, DOUBLE, 256): (TileShape(1, 1, 32, 32, 1),),
    (FORWARD, PLAIN, 64): (TileShape(8, 2, 64, 32), TileShape(4, 1, 32, 32)),
    (FORWARD, PLAIN, 128): (TileShape(8, 2, 32, 32), TileShape(4, 1, 32, 32), TileShape(2, 1, 16, 16, 1)),
    (FORWARD, PLAIN, 256): (TileShape(4, 1, 16, 16), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_Q, PLAIN, 64): (TileShape(8, 2, 32, 32), TileShape(8, 1, 64, 32), TileShape(4, 1, 32, 16, 1)),
    (BACKWARD_Q, PLAIN, 128): (TileShape(4, 1, 32, 32), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_Q, PLAIN, 256): (TileShape(4, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (BACKWARD_KV, PLAIN, 64): (TileShape(8, 1, 64, 32), TileShape(4, 1, 32, 16, 1)),
    (BACKWARD_KV, PLAIN, 128): (TileShape(4, 1, 32, 16), TileShape(2, 1, 16, 16, 1)),
    (BACKWARD_KV, PLAIN, 256): (TileShape(4, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (DIAGONALS, PLAIN, 64): (TileShape(4, 1, 32, 32, 1), TileShape(2, 1, 32, 32, 1)),
    (DIAGONALS, PLAIN, 128): (TileShape(4, 1, 32, 32, 1), TileShape(1, 1, 32, 32, 1)),
    (DIAGONALS, PLAIN, 256): (TileShape(2, 1, 32, 32, 1), TileShape(1, 1, 32, 32, 1)),
}

# Shapes of the pass over keys that also sums q̄, by largest padded head dim. The warps divide the columns of q̄
# among them by powers of 2; the last shapes give each warp all columns.
ATOMIC_SHAPES = {
    64: (TileShape(8, 1, 64, 64), TileShape(8, 1, 32, 32), TileShape(4, 1, 64, 64)),
    128: (TileShape(8, 1, 64, 32), TileShape(8, 1, 32, 32, 1), TileShape(2, 1, 32, 32, 1)),
}

# k̄ and v̄ in two launches, with two blocks of 16 rows per warp: each launch reads a tile of queries once for
# 32 keys and computes the scores; a single launch would read it for 16 keys. Shared memory limits a single
# launch.
SPLIT_SHAPES = (TileShape(4, 2, 32, 32, 2, 2), TileShape(8, 2, 32, 32, 1), TileShape(4, 2, 32, 32))

# The three passes of second derivatives store every tile twice, with its tangent: one block of rows per warp,
# one stage.
SECOND_SHAPES: dict[tuple[str, int], tuple[TileShape, ...]] = {
    (HALF, 64): (TileShape(8, 1, 64, 32, 1), TileShape(4, 1, 32, 32, 1)),
    (HALF, 128): (TileShape(8, 1, 64, 32, 1), TileShape(4, 1, 32, 32, 1), TileShape(2, 1, 32, 16, 1)),
    (HALF, 256): (TileShape(4, 1, 32, 16, 1), TileShape(2, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (TF32, 64): (TileShape(8, 1, 32, 16, 1), TileShape(4, 1, 32, 16, 1), TileShape(2, 1, 16, 16, 1)),
    (TF32, 128): (
        TileShape(4, 1, 32, 16, 1), TileShape(2, 1, 32, 16, 1), TileShape(2, 1, 16, 16, 1),
        TileShape(1, 1, 16, 16, 1),
    ),
    (TF32, 256): (TileShape(2, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (PLAIN, 64): (TileShape(4, 1, 32, 16, 1), TileShape(2, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (PLAIN, 128): (TileShape(4, 1, 32, 16, 1), TileShape(2, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (PLAIN, 256): (TileShape(2, 1, 16, 16, 1), TileShape(1, 1, 16, 16, 1)),
    (DOUBLE, 64): (TileShape(4, 1, 32, 8, 1), TileShape(2, 1, 16, 8, 1), TileShape(1, 1, 16, 8, 1)),
    (DOUBLE, 128): (TileShape(2, 1, 16, 8, 1), TileShape(1, 1, 16, 8, 1), TileShape(1, 1, 8, 8, 1)),
    (DOUBLE, 256): (TileShape(1, 1, 16, 8, 1), TileShape(1, 1, 8, 8, 1)),
}


def candidates(
    kind: str, family: str, level: int, atomic: bool = False, split: bool = False
) -> tuple[TileShape, ...]:
    """The shapes of a pass from the fastest on; ``level`` is the largest head dim that they support."""
    if kind in SECOND_ORDER:
        return SECOND_SHAPES[family, level]
    if split:
        return SPLIT_SHAPES
    return ATOMIC_SHAPES[level] if atomic else SHAPES[kind, family, level]

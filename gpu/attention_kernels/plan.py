"""The tiles of an attention kernel, and its source text.

A plan holds everything that is compiled into a kernel: element type, head dims, tile shape. Candidates are
tried from the fastest on, until one fits the device's shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from symad.errors import ShapeError
from symad.gpu.attention_kernels.compiled_score import CompiledScore
from symad.gpu.attention_kernels.tile_shapes import (
    BACKWARD_KV,
    DIAGONALS,
    DOUBLE,
    FORWARD,
    HALF,
    PLAIN,
    SECOND_KV,
    SECOND_ORDER,
    TANGENT,
    TF32,
    TileShape,
    candidates,
)
from symad.gpu.compile import kernel_text


@dataclass(frozen=True)
class Element:
    """An element type of the kernels.

    Attributes:
        name: the name in the kernels.
        family: element types with the same family have the same tile shapes.
        bytes: the bytes of one number.
        multiple: the number of columns of a tile is a multiple of this.
        real: the C type of scores and sums.
    """

    name: str
    family: str
    bytes: int
    multiple: int
    real: str = "float"


ELEMENTS = {
    "bfloat16": Element("Bf16", HALF, 2, 16),
    "float16": Element("Fp16", HALF, 2, 16),
    "float32": Element("Fp32", TF32, 4, 32),
    "float64": Element("Fp64", DOUBLE, 8, 16, "double"),
}
PLAIN_FLOAT32 = Element("Fp32Plain", PLAIN, 4, 32)  # ordinary arithmetic, no tensor cores
MAX_HEAD_DIM = 256
"""The largest head dim of the kernels.

Origin: the kernels of gpu/kernels, which support no more.
"""


@dataclass(frozen=True)
class KernelPlan:
    """One kernel, specialized.

    Attributes:
        kind: the pass, a name of attention_shapes.
        element: the type of q, k, v.
        head_dim: columns of q and k, a multiple of 16 bytes.
        value_dim: columns of v.
        shape: the tile shape.
        slices: the number of blocks that divide the columns of the result; each computes the scores again.
        with_k: whether BACKWARD_KV computes k̄.
        with_v: whether BACKWARD_KV computes v̄.
        with_q: whether BACKWARD_KV also sums q̄, by atomic additions.
    """

    kind: str
    element: Element
    head_dim: int
    value_dim: int
    shape: TileShape
    slices: int = 1
    with_k: bool = True
    with_v: bool = True
    with_q: bool = False

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return 32 * self.shape.warps

    @property
    def own(self) -> int:
        """The rows that a block owns."""
        return 16 * self.shape.mt * self.shape.warps

    @property
    def keys(self) -> int:
        """The keys that meet the rows of a block along the diagonals it owns."""
        return self.own - 16 + self.shape.part

    @property
    def band(self) -> int:
        """The diagonals that a block of DIAGONALS owns."""
        return self.shape.part - 16

    @property
    def padded(self) -> tuple[int, int]:
        """The columns of the query and value tiles; the sliced ones are a multiple of the slices."""
        multiple = self.element.multiple

        def up(width: int, slices: int) -> int:
            return -(-width // (multiple * slices)) * multiple * slices

        sliced = self.sliced_side
        return (
            up(self.head_dim, self.slices if sliced == "head" else 1),
            up(self.value_dim, self.slices if sliced == "value" else 1),
        )

    @property
    def even(self) -> bool:
        """Whether the warps can divide the columns of q̄ among them, where they sum it."""
        groups = 16 * self.shape.warps // self.shape.part
        return not self.with_q or groups == 1 or self.padded[0] // groups in (16, 32, 64)

    @property
    def sliced_side(self) -> str:
        """Whether the result has the columns of q ("head") or of v ("value")."""
        values = self.kind in (BACKWARD_KV, SECOND_KV) and not self.with_k
        if self.kind in (FORWARD, TANGENT) or values:
            return "value"
        return "head"

    @property
    def slice(self) -> int:
        """The columns of the result per block."""
        d, dv = self.padded
        return (d if self.sliced_side == "head" else dv) // self.slices

    def pitch(self, columns: int) -> int:
        """The bytes of a tile's row in shared memory, as in tile.h."""
        size = columns * self.element.bytes
        return 32 if size <= 32 else 64 if size <= 64 else -(-size // 128) * 128

    @property
    def shared_bytes(self) -> int:
        """The dynamic shared memory of a block, in bytes."""
        d, dv = map(self.pitch, self.padded)
        s = self.shape
        real = 8 if self.element.real == "double" else 4
        if self.kind == TANGENT:
            return 2 * (self.own * d + s.span * (d + self.pitch(self.slice)))
        if self.kind in SECOND_ORDER:
            lines = 4 * s.span * real if self.kind == SECOND_KV else 0
            return 2 * (self.own + s.span) * (d + dv) + lines
        if self.kind == DIAGONALS:
            return (self.own + self.keys) * (d + dv)
        if self.kind == FORWARD:
            return self.own * d + s.stages * s.span * (d + self.pitch(self.slice))
        lines = 0
        if self.kind == BACKWARD_KV:
            lines = -(-2 * s.span * real // 128) * 128
        weights = 2 * self.own * self.pitch(s.part) if self.with_q else 0
        return (self.own + s.stages * s.span) * (d + dv) + s.stages * lines + weights

    def source(self, score: CompiledScore, plain: bool = True) -> str:
        """The whole text of the module; see `pieces`."""
        return "".join(text for _, text in pieces(self, score, plain))


def constants(plan: KernelPlan) -> dict[str, int]:
    """The names that attention.h expects."""
    d, dv = plan.padded
    s = plan.shape
    return {
        "HEAD_DIM": plan.head_dim, "VALUE_DIM": plan.value_dim, "D": d, "DV": dv,
        "SLICE": plan.slice, "WARPS": s.warps, "MT": s.mt, "SPAN": s.span, "PART": s.part,
        "STAGES": s.stages, "MIN_BLOCKS": s.min_blocks,
        "WITH_K": int(plan.with_k), "WITH_V": int(plan.with_v),
    }  # fmt: skip


def pieces(plan: KernelPlan, score: CompiledScore, plain: bool = True) -> list[tuple[str, str]]:
    """The text of the module in parts: named parts are shared by modules, others have the name "".

    ``plain``: whether the scale is positive; the kernels fold only a positive scale into the scores.
    """
    files = ["attention.h", f"attention_{plan.kind}.cu"]
    if plan.kind in SECOND_ORDER:
        files[1:1] = ["attention_second.h"] * (plan.kind != TANGENT)
    elif plan.kind != FORWARD:
        files[1:1] = ["attention_backward.h", *["attention_atomic.h"] * plan.with_q]
    head = [
        f"#define SYMAD_REAL {plan.element.real}",
        f"#define SYMAD_ELEMENT_BITS {8 * plan.element.bytes}",
        f"#define SCORE_PLAIN {int(score.plain and plain)}",
        score.macros,
    ]
    numbers = [f"constexpr int {name} = {value};" for name, value in constants(plan).items()]
    middle = [f"typedef {plan.element.name} E;", *numbers, ""]
    return [
        ("", "\n".join(head)),
        ("prims.h", kernel_text("prims.h")),
        ("score", f"{score.text}\n"),
        *((name, kernel_text(name)) for name in ("tile.h", "matrix.h", "product.h")),
        ("", "\n".join(middle)),
        *((name, kernel_text(name)) for name in files),
    ]


@lru_cache(maxsize=256)
def plans(
    kind: str,
    element: Element,
    head_dim: int,
    value_dim: int,
    shared: int,
    plain: bool = True,
    atomic: bool = False,
) -> tuple[KernelPlan, ...]:
    """The launches of one pass: one, or separate ones for k̄ and v̄ if both need too many registers.

    Args:
        kind: the pass, a name of attention_shapes.
        element: the type of q, k, v.
        head_dim: columns of q and k.
        value_dim: columns of v.
        shared: bytes of shared memory that a block may use.
        plain: whether the score is s itself. Other scores need registers in the backward pass, which then
            has one block of rows per warp.
        atomic: whether BACKWARD_KV also sums q̄; for 16-bit elements and head dims up to 128.

    Raises:
        ShapeError: a head dim is over 256, or no tile fits in ``shared`` bytes.
    """
    widest = max(head_dim, value_dim)
    if widest > MAX_HEAD_DIM:
        raise ShapeError(
            f"head dims {head_dim} and {value_dim}: the kernels take at most {MAX_HEAD_DIM}; "
            "use backend numpy, or split the heads"
        )
    level = next(w for w in (64, 128, 256) if widest <= w)
    split = _two_blocks(kind, element.family, level) and plain and not atomic
    slices = _slices(kind, element.family, level)
    together = _share_registers(kind, element.family, level) and not split
    parts = kind in (BACKWARD_KV, SECOND_KV) and not together
    chosen = []
    for with_k, with_v in ((True, False), (False, True)) if parts else ((True, True),):
        possible = [
            KernelPlan(kind, element, head_dim, value_dim, shape, slices, with_k, with_v, atomic)
            for shape in candidates(kind, element.family, level, atomic, split)
            if plain or kind == FORWARD or shape.mt == 1
        ]
        chosen.append(_first_that_fits(possible, shared))
    return tuple(chosen)


def _two_blocks(kind: str, family: str, level: int) -> bool:
    """Whether blocks of k̄ and of v̄ that are apart have two tiles for each warp."""
    return kind == BACKWARD_KV and family == HALF and level == 128


def _share_registers(kind: str, family: str, level: int) -> bool:
    """Whether k̄ and v̄ fit in registers together."""
    narrow = family in (HALF, PLAIN)
    return level == 64 and narrow if kind == SECOND_KV else level == 64 or (narrow and level == 128)


def _slices(kind: str, family: str, level: int) -> int:
    """The slices of a result, each of a launch with fewer registers."""
    wide = family == DOUBLE and level == 256 and kind != DIAGONALS
    return 2 if wide or (kind in SECOND_ORDER and level == 128 and family in (TF32, DOUBLE)) else 1


def _first_that_fits(possible: Sequence[KernelPlan], shared: int) -> KernelPlan:
    """The fastest plan by estimate that a block has room for.

    Raises:
        ShapeError: there is none.
    """
    needs = {p: p.shared_bytes * p.shape.min_blocks for p in possible}
    fitting = [p for p in possible if p.even and needs[p] <= shared]
    if fitting:
        return fitting[0]
    first = possible[0]
    raise ShapeError(
        f"head dims {first.head_dim} and {first.value_dim} in {first.element.name} need "
        f"{min(needs.values())} bytes of shared memory; this device has {shared}. Use a smaller dtype or "
        "backend numpy"
    )

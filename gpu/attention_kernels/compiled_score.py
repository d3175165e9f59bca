"""Score functions and masks as CUDA C text for the attention kernels, and the places of their gradients.

`compile_score` turns a traced `Score` into the text that gpu/kernels/README.md describes: the value, ∂t/∂s
and the partial of every differentiable parameter read. Every subexpression is computed where it changes: once
per block (b, h), per query row, per key column, or per pair. The kernels return cotangents of parameter reads
summed over whole rows, columns or diagonals in a fixed order; printed code gathers them into the parameters,
again in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from symad.gpu.attention_kernels.score_layout import ScoreField
from symad.gpu.attention_kernels.score_text import macros, score_text
from symad.gpu.device_formulas import Device
from symad.numeric.pairs.scores import B, H, I, J, Load, S, Score, SummedOver


@dataclass(frozen=True)
class CompiledScore:
    """The C text of one score function and mask, and the layout of its arguments and gradients.

    Attributes:
        score: the traced functions.
        text: the C text; it needs ``macros`` and prims.h before it.
        rows: symbols whose cotangents the kernels sum over keys; those of `columns` are summed over rows,
            those of `diagonals` along i − j, and those of `pairs` are not summed.
        macros: #define lines of SCORE_ROWS and the other traits.
        fields: the fields of ScoreArgs.
        real: "float" or "double".
    """

    score: Score
    text: str
    rows: tuple[sp.Symbol, ...]
    columns: tuple[sp.Symbol, ...]
    diagonals: tuple[sp.Symbol, ...]
    pairs: tuple[sp.Symbol, ...]
    macros: str
    fields: tuple[ScoreField, ...]
    real: str

    @property
    def plain(self) -> bool:
        """Whether t is s itself."""
        return bool(self.score.value == S)

    def places(self, load: Load) -> list[tuple[int | None, int]] | None:
        """The places where an array is read, if the entries of a sum read different ones: `add_laid_out`."""
        reduction = self.score.reduction(load.symbol)
        if reduction is SummedOver.DIAGONAL:
            return None
        axes = {B: 0, H: 1, J: 3 if reduction is SummedOver.PAIR else 2, I: 2}
        loops = [e for e in load.index if e in axes]
        if len(set(loops)) < len(loops) or not all(e in axes or e.is_Integer for e in load.index):
            return None
        return [(axes[e], 0) if e in axes else (None, int(e)) for e in load.index]


@lru_cache(maxsize=256)
def compile_score(
    score: Score, real: str = "float", fast: bool = False
) -> CompiledScore:
    """The C text of a traced score function and mask.

    Args:
        score: a score from `symad.numeric.pairs.scores.trace_score`.
        real: type of scores in the kernels, "float" or "double".
        fast: allow approximate instructions (tanh with an absolute error of about 5e-4).

    Raises:
        LoweringError: the score uses a function without a CUDA form.
    """
    groups: dict[SummedOver, list[sp.Symbol]] = {r: [] for r in SummedOver}
    for symbol in score.differentiable:
        reduction = score.reduction(symbol)
        groups[SummedOver.ROW if reduction is SummedOver.ALL else reduction].append(symbol)
    symbols = (
        tuple(groups[SummedOver.ROW]),
        tuple(groups[SummedOver.COLUMN]),
        tuple(groups[SummedOver.DIAGONAL]),
        tuple(groups[SummedOver.PAIR]),
    )
    text, fields = score_text(score, symbols, Device(real, fast))
    return CompiledScore(score, text, *symbols, macros(score, symbols), fields, real)

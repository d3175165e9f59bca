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

from symad.gpu.attention_kernels.score_layout import ScoreField
from symad.gpu.attention_kernels.score_text import Groups, macros, score_text
from symad.gpu.device_formulas import Device
from symad.numeric.pairs.scores import B, H, I, J, Load, S, Score, SummedOver

KINDS = {
    SummedOver.ALL: "row", SummedOver.ROW: "row", SummedOver.COLUMN: "column",
    SummedOver.DIAGONAL: "diagonal", SummedOver.PAIR: "pair",
}  # fmt: skip
"""The kind of sum that a kernel takes of a cotangent."""


@dataclass(frozen=True)
class CompiledScore:
    """The C text of one score function and mask, and the layout of its arguments and gradients.

    Attributes:
        score: the traced functions.
        text: the C text; it needs ``macros`` and prims.h before it.
        groups: the symbols whose cotangents the kernels sum, by kind: "row" over keys, "column" over rows,
            "diagonal" along i − j; those of "pair" are not summed.
        macros: #define lines of SCORE_ROWS and the other traits.
        fields: the fields of ScoreArgs.
        real: "float" or "double".
    """

    score: Score
    text: str
    groups: Groups
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
def compile_score(score: Score, real: str = "float", fast: bool = False) -> CompiledScore:
    """The C text of a traced score, in "float" or "double"; ``fast`` allows an approximate tanh (5e-4).

    Raises:
        LoweringError: the score uses a function without a CUDA form.
    """
    groups: Groups = {kind: () for kind in KINDS.values()}
    for symbol in score.differentiable:
        groups[KINDS[score.reduction(symbol)]] += (symbol,)
    text, fields = score_text(score, groups, Device(real, fast))
    return CompiledScore(score, text, groups, macros(score, groups), fields, real)

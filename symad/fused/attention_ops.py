"""The ops of attention: the value, its tangent, its cotangents, and the tangents of these."""

from __future__ import annotations

from dataclasses import dataclass

from symad.core.expressions import Formula
from symad.core.graph import Op
from symad.fused.score_functions import Parameter


@dataclass(frozen=True, eq=False)
class AttentionOp(Op):
    """Arguments begin with q, k, v and the parameters of the score.

    Attributes:
        score: t as a formula of s, b, h, i, j and the parameters.
        mask: the condition under which a pair takes part.
        parameters: for each parameter its name, its rank, and whether it holds integers.
        scale: factor of ⟨q_i, k_j⟩; 1/√d if None.
        part: the number of the result.
    """

    score: Formula
    mask: Formula
    parameters: tuple[tuple[str, int, bool], ...]
    scale: float | None
    part: int
    several = ("part",)

    @property
    def given(self) -> tuple[Parameter, ...]:
        """The parameters."""
        return tuple(Parameter(*p) for p in self.parameters)

    @property
    def real(self) -> tuple[int, ...]:
        """The positions among the arguments of q, k, v and the real parameters."""
        return (0, 1, 2, *(3 + k for k, p in enumerate(self.given) if not p.integer))

    @property
    def row_numbers(self) -> list[int]:
        """The positions of the parameters that are integers."""
        return [3 + k for k, p in enumerate(self.given) if p.integer]

    @property
    def inner(self) -> int:
        """The number of arguments q, k, v and parameters."""
        return 3 + len(self.parameters)


@dataclass(frozen=True, eq=False)
class Attention(AttentionOp):
    """(q, k, v, θ...) -> part 0: o (B, H, N, d_v); part 1: L (B, H, N)."""


@dataclass(frozen=True, eq=False)
class AttentionTangent(AttentionOp):
    """(q, k, v, θ..., o, L, q̇, k̇, v̇, θ̇ of the real...) -> part 0: ȯ; part 1: L̇."""


@dataclass(frozen=True, eq=False)
class AttentionCotangent(AttentionOp):
    """(q, k, v, θ..., o, L, ō, L̄) -> the cotangent of argument ``part``."""


@dataclass(frozen=True, eq=False)
class AttentionSecond(AttentionOp):
    """(q, k, v, θ..., o, L, ō, L̄, q̇, k̇, v̇, ȯ, L̇, ō̇, L̄̇) -> the tangent of q̄, k̄ or v̄."""

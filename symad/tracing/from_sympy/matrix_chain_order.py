"""The order of multiplication in a product of several matrices.

SymPy stores a product flat, A·B·w, and even turns A·(A·w) into A²·w. The value does not depend on
the order of the products, but the cost does: O(n²) for A·(A·w) against O(n³) for A²·w. The cheapest
order is found by dynamic programming over the chain (Godbole, IEEE Trans. Computers C-22, 1973).
An inverse is not formed if a linear solve suffices, multiplying by a vector of
ones is a sum or a repetition, and multiplying by a diagonal matrix scales rows or columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.dims import Dim, same_dim
from symad.core.graph import Node
from symad.ops.basic.contraction import (
    Einsum,
    contract,
    matmul,
    matrix_transpose,
    sum_all,
    sum_axes,
)
from symad.ops.basic.shaping import Broadcast, broadcast_axes, reshape
from symad.ops.basic.sources import Eye, constant_value
from symad.ops.linalg.matrix_power import matrix_power
from symad.ops.linalg.solve_det import inverse, solve

SYMBOL = 1000
"""The number that is put for every dimension symbol, so large that products with vectors come first."""

MAX_ORDERED_FACTORS = 40
"""Longer chains are multiplied from the end with fewer rows or columns."""

UNROLL = 16
"""The largest power that is expanded into factors if this is cheaper."""


@dataclass(frozen=True)
class Factor:
    """``node ** exponent`` in a product; −1 is a solve, other exponents are formed first."""

    node: Node
    exponent: int = 1

    @property
    def rows(self) -> Dim:
        """The number of rows."""
        return self.node.shape[0]

    @property
    def columns(self) -> Dim:
        """The number of columns."""
        return self.node.shape[1]


def multiply(factors: Sequence[Factor]) -> Node:
    """The product of a chain of matching factors, in the cheapest order."""
    if len(factors) > MAX_ORDERED_FACTORS:
        return _fold(factors)
    written_out = _written_out(factors)
    kept = _ChainOrder(factors)
    if len(written_out) == len(factors) or len(written_out) > MAX_ORDERED_FACTORS:
        return kept.build()
    unrolled = _ChainOrder(written_out)
    return unrolled.build() if unrolled.cost < kept.cost else kept.build()


def _written_out(factors: Sequence[Factor]) -> list[Factor]:
    """A² as A, A; A⁻² as A⁻¹, A⁻¹."""
    result: list[Factor] = []
    for factor in factors:
        k = factor.exponent
        if 1 < abs(k) <= UNROLL:
            result.extend([Factor(factor.node, 1 if k > 0 else -1)] * abs(k))
        else:
            result.append(factor)
    return result


def _fold(factors: Sequence[Factor]) -> Node:
    if _weight(factors[0].rows) < _weight(factors[-1].columns):
        done = factors[0]
        for factor in factors[1:]:
            done = Factor(_pair(done, factor))
    else:
        done = factors[-1]
        for factor in reversed(factors[:-1]):
            done = Factor(_pair(factor, done))
    return done.node


class _ChainOrder:
    """The cheapest order of one chain: ``best[i, j]`` is (cost, split) of factors i to j."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        self.factors = factors
        self.rows = [_weight(factor.rows) for factor in factors]
        self.columns = [_weight(factor.columns) for factor in factors]
        self.thin = [_is_thin(factor) for factor in factors]
        self.best: dict[tuple[int, int], tuple[float, int]] = {}
        for i, factor in enumerate(factors):
            self.best[i, i] = (_power_cost(factor), i)
        for length in range(2, len(factors) + 1):
            for i in range(len(factors) - length + 1):
                j = i + length - 1
                self.best[i, j] = min((self._cost(i, k, j), k) for k in range(i, j))

    @property
    def cost(self) -> float:
        return self.best[0, len(self.factors) - 1][0]

    def _cost(self, i: int, k: int, j: int) -> float:
        """The cost of (i … k)·(k+1 … j)."""
        rows, inner, columns = self.rows[i], self.columns[k], self.columns[j]
        below = self.best[i, k][0] + self.best[k + 1, j][0]
        if i == k and self.factors[k].exponent == -1:
            return below + 2 / 3 * rows**3 + 2 * rows**2 * columns
        if k + 1 == j and self.factors[j].exponent == -1:
            return below + 2 / 3 * columns**3 + 2 * columns**2 * rows
        if (i == k and self.thin[k]) or (k + 1 == j and self.thin[j]):
            return below + max(rows, inner) * max(inner, columns)
        return below + 2 * rows * inner * columns

    def build(self) -> Node:
        """The product in this order; the recursion is at most `MAX_ORDERED_FACTORS` deep."""
        if len(self.factors) == 3:
            first, middle, last = self.factors
            if _row_of_ones(first) and _column_of_ones(last):
                return reshape(sum_all(_formed(middle)), (1, 1))
        return _formed(self._part(0, len(self.factors) - 1))

    def _part(self, i: int, j: int) -> Factor:
        if i == j:
            return self.factors[i]
        split = self.best[i, j][1]
        return Factor(_pair(self._part(i, split), self._part(split + 1, j)))


def _weight(dim: Dim) -> float:
    if isinstance(dim, int):
        return float(dim)
    return float(dim.subs(dict.fromkeys(dim.free_symbols, SYMBOL)))


def _power_cost(factor: Factor) -> float:
    """The cost of repeated squaring for an exponent that is formed."""
    k = abs(factor.exponent)
    if k <= 1:
        return 0.0
    products = k.bit_length() + k.bit_count() - 2
    return (
        products * 2 * _weight(factor.rows) ** 3 + (factor.exponent < 0) * 8 / 3 * _weight(factor.rows) ** 3
    )


def _formed(factor: Factor) -> Node:
    if factor.exponent == 1:
        return factor.node
    return inverse(factor.node) if factor.exponent == -1 else matrix_power(factor.node, factor.exponent)


def _pair(left: Factor, right: Factor) -> Node:
    """One product, or a cheaper equivalent of it."""
    if left.exponent == -1:
        return solve(left.node, _formed(right))
    if right.exponent == -1:
        return matrix_transpose(solve(matrix_transpose(right.node), matrix_transpose(_formed(left))))
    a, b = _formed(left), _formed(right)
    if _row_of_ones(left):
        return _column_sums(b)
    if _column_of_ones(right):
        return _row_sums(a)
    if _column_of_ones(left):
        return broadcast_axes(reshape(b, b.shape[1:]), (a.shape[0], b.shape[1]), (1,))
    if _row_of_ones(right):
        return broadcast_axes(reshape(a, a.shape[:1]), (a.shape[0], b.shape[1]), (0,))
    scale = diagonal_of(a)
    if scale is not None:
        return contract(["i", "ik"], "ik", scale, b)
    scale = diagonal_of(b)
    return matmul(a, b) if scale is None else contract(["ij", "j"], "ij", a, scale)


def _column_sums(b: Node) -> Node:
    """1ᵀ·B as a (1, k) array."""
    total = sum_all(b) if same_dim(b.shape[1], 1) else sum_axes(b, (0,))
    return reshape(total, (1, b.shape[1]))


def _row_sums(a: Node) -> Node:
    """A·1 as an (n, 1) array."""
    total = sum_all(a) if same_dim(a.shape[0], 1) else sum_axes(a, (1,))
    return reshape(total, (a.shape[0], 1))


def is_ones(node: Node) -> bool:
    """True if every element is the constant 1, by construction."""
    return isinstance(node.op, Broadcast) and constant_value(node.args[0]) == 1


def _row_of_ones(factor: Factor) -> bool:
    return factor.exponent == 1 and is_ones(factor.node) and same_dim(factor.rows, 1)


def _column_of_ones(factor: Factor) -> bool:
    return factor.exponent == 1 and is_ones(factor.node) and same_dim(factor.columns, 1)


def _is_thin(factor: Factor) -> bool:
    """True if multiplying by it costs one operation for each element."""
    return _row_of_ones(factor) or _column_of_ones(factor) or diagonal_of(factor.node) is not None


def diagonal_of(a: Node) -> Node | None:
    """The vector v if a matrix was made as Diag(v); None for any other matrix."""
    if not isinstance(a.op, Einsum) or len(a.args) != 2 or a.op.output != (0, 1):
        return None
    vectors = [arg for arg, labels in zip(a.args, a.op.inputs, strict=True) if labels in ((0,), (1,))]
    return vectors[0] if len(vectors) == 1 and any(isinstance(arg.op, Eye) for arg in a.args) else None

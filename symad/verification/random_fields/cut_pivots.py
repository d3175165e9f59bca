"""Matrices of which Cholesky factors are taken, cut as the arguments of roots are: `cut_radicands`.

L is rational in the elements of A below its diagonal and in the roots of the pivots, of
d_k = a_kk − Σ_{j<k} L_kj². Each d_k is replaced by r_k^m with a fresh r_k, the same for equal ones, and a_kk
by a_kk + r_k^m − d_k. No other element changes, so nothing is assumed of a matrix that is not symmetric.

Why that is sound: what is equal for all r_k is equal for those with r_k^m = d_k, which leave A as it is.
"""

from __future__ import annotations

from symad.core.graph import Node
from symad.verification.fields.prime_fields import Array
from symad.verification.random_fields.cut_radicands import Cuts
from symad.verification.random_fields.function_values import Signatures


def with_fresh_pivots(value: Array, node: Node, cuts: Cuts, functions: Signatures) -> Array:
    """The residues (T, *stack, n, n) of a matrix, with the diagonal that fresh pivots give."""
    field, n = functions.field, node.shape[-1]
    made = value.reshape((field.lanes, -1, n, n, *field.tail)).copy()
    rest = made.copy()  # of which the lower triangle is read, as by the factor
    for k in range(n):
        pivot = rest[:, :, k, k].copy()
        fresh = functions.as_power(pivot, cuts.power, cuts.orders)
        made[:, :, k, k] = field.add(made[:, :, k, k], field.sub(fresh, pivot))
        column = rest[:, :, k + 1 :, k].copy()
        unit = field.mul(column, field.inverse(fresh)[0][:, :, None])
        product = field.mul(unit[:, :, :, None], column[:, :, None])
        rest[:, :, k + 1 :, k + 1 :] = field.sub(rest[:, :, k + 1 :, k + 1 :], product)
    return made.reshape(value.shape)

"""Inverses and determinants in index notation.

M M⁻¹ = M⁻¹ M = 1, (A B)⁻¹ = B⁻¹ A⁻¹, (Mᵀ)⁻¹ = (M⁻¹)ᵀ, (c M)⁻¹ = M⁻¹/c; det(A B) = det A det B and
det Mᵀ = det M. A sum is inverted as a whole.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import sympy

from symad.core.dims import Dim, Shape, same_dim
from symad.core.graph import Node
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve
from symad.verification.budget import OutOfBudget
from symad.verification.proof.index_networks import DELTA, Form, Networks
from symad.verification.proof.index_notation import Forms, Written, index_form


@index_form.dispatch
def solve_index_form(op: Solve, y: Node, args: Forms, networks: Networks) -> Written:
    a, b = args
    *stack, n, k = y.shape
    inverse = _inverse(_one_matrix(a, len(stack), networks), (n, n), networks)
    outer = tuple(range(len(stack)))
    dims: dict[Hashable, Dim] = {**dict(enumerate(stack)), "i": n, "j": n, "k": k}
    return networks.contract([(inverse, ("i", "j")), (b, (*outer, "j", "k"))], (*outer, "i", "k"), dims)


def _one_matrix(form: Form, stacked: int, networks: Networks) -> Form:
    """The one matrix that a stack repeats."""
    if any(i in range(stacked) for _, network in form for _, at, _ in network.factors for i in at):
        raise OutOfBudget("stacks of different matrices have no form for all sizes")
    return networks.permuted(form, [-1] * stacked + [0, 1])


def _inverse(form: Form, shape: Shape, networks: Networks) -> Form:
    """M⁻¹: of a product of square matrices the product of inverses, else an atom."""
    n = shape[0]
    chain = _chain(form, n)
    if chain is None:
        name, order = networks.name(form, shape)
        atom = ("inverse", name)
        if networks.is_symmetric(form):
            networks.symmetric.add(atom)
        return networks.single(atom, shape, order)
    coefficient, scalars, matrices = chain
    factors = [(atom, at, -e) for atom, at, e in scalars]
    ends = [0, *[next(networks.fresh) for _ in matrices[1:]], 1]
    bound = {i: n for i in ends[1:-1]}
    for k, (matrix, turned) in enumerate(reversed(matrices)):
        atom = ("inverse of", matrix)
        networks.singles[atom] = (matrix, False)
        if matrix in networks.symmetric:
            networks.symmetric.add(atom)
        at = (ends[k], ends[k + 1])
        factors.append((atom, at[::-1] if turned else at, Fraction(1)))
    return networks.simplify(1 / coefficient, factors, bound)


def _chain(form: Form, n: Dim) -> Any:
    """c s M_1 M_2 ... of square matrices: (c, scalar factors, [(M, whether transposed)]), or None."""
    if len(form) != 1:
        return None
    coefficient, network = form[0]
    scalars = [f for f in network.factors if not f[1]]
    rest = [f for f in network.factors if f[1]]
    if not all(len(at) == 2 and e == 1 and atom != DELTA for atom, at, e in rest) or not rest:
        return None
    if not all(same_dim(dim, n) for dim in network.dims.values()):
        return None
    found, at = [], 0
    while rest:
        step = next((f for f in rest if at in f[1]), None)
        if step is None:
            return None
        rest.remove(step)
        turned = step[1][1] == at
        found.append((step[0], turned))
        at = step[1][0] if turned else step[1][1]
    return (coefficient, scalars, found) if at == 1 else None


@index_form.dispatch
def determinant_index_form(op: Determinant, y: Node, args: Forms, networks: Networks) -> Written:
    return _determinant(y, args[0], networks)


def _determinant(y: Node, form: Form, networks: Networks) -> Any:
    """det M = Π det of its factors, where M is a product; y is det M or its logarithm."""
    shape = y.args[0].shape[-2:]
    form = _one_matrix(form, len(y.shape), networks)
    chain = _chain(form, shape[0])
    if chain is None or chain[0] != 1 or chain[1]:
        name, _ = networks.name(form, shape)
        return networks.single(("determinant", name), ())
    factors: list[tuple[Hashable, tuple[int, ...], Fraction]] = []
    for matrix, _ in chain[2]:
        inverse = matrix in networks.singles
        base = networks.singles[matrix][0] if inverse else matrix
        factors.append((("determinant of", base), (), Fraction(-1 if inverse else 1)))
    return networks.simplify(Fraction(1), factors, {})


@index_form.dispatch
def log_determinant_index_form(op: LogDeterminant, y: Node, args: Forms, networks: Networks) -> Written:
    determinant = _determinant(y, args[0], networks)
    return networks.atom(("function", sympy.log), determinant, ())

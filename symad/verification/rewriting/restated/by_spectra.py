"""A matrix written by its eigenvectors or singular vectors, where such vectors are compared.

A square A is V diag(w) Vᵀ and a rest of which the eigenvectors know nothing: what stands above the
diagonal, which is not read, or a skew part, which A + Aᵀ loses; and it is U diag(σ) Vᵀ. Orthogonal matrices
are Cayley's (I + S)⁻¹(I − S) of skew S, all of determinant 1 but a set without interior; the signs of the
vectors, and one more of U, give the others. So the new inputs reach every A but such a set.

That W are the vectors of the matrix M, of which the system is, must hold as well: M W = W diag(w) and
WᵀW = I, with eigenvalues that differ. The sign of each vector is free, since LAPACK chooses it. Source:
Golub & Van Loan (2013), sections 2.5.5 and 8.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import sympy

from symad.core.graph import Node, rebuild, topological
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import add, div, neg, sub
from symad.ops.basic.contraction import contract, diagonal_matrix, matmul, matrix_transpose
from symad.ops.basic.shaping import Slice, broadcast_to, reshape, slice_axes, slice_axis
from symad.ops.basic.sources import constant, eye, input_node, inputs_in
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.linalg.cholesky import Triangle, symmetric_part_of_lower
from symad.ops.linalg.eigen import EigenSystem, EigenValues, EigenVectors
from symad.ops.linalg.solve_det import solve
from symad.verification.rewriting.rewrite import expand_definitions

Claims = list[tuple[Node, Node]]
"""Pairs that must be equal for the new inputs to be right."""


def by_spectra(outputs: Sequence[Node]) -> Iterator[tuple[list[Node], Claims, list[Node]]]:
    """For each way to write the matrix two sides with other inputs, what must be equal, what must differ."""
    outputs = expand_definitions(outputs)
    nodes = topological(outputs)
    systems = {n for n in nodes if isinstance(n.op, EigenSystem)}
    if len(systems) != 1:
        return
    (system,) = systems
    inputs = inputs_in([system])
    if len(inputs) != 1 or len(inputs[0].shape) != 2 or len(system.shape) != 2:
        return
    for written, vectors in _ways(inputs[0], system.args[0].shape[0]):
        replaced = {inputs[0]: written}
        (matrix,) = rebuild(system.args, replaced)
        matrix = symmetric_part_of_lower(matrix)  # what is read
        w, W = _system(matrix, *vectors)
        signs = _fresh("s", w.shape)
        turned = _signed(W, signs)
        known: dict[Node, Node] = {system: concatenate([reshape(w, (1, *w.shape)), turned], 0)}
        for n in nodes:
            if isinstance(n.op, (EigenValues, EigenVectors)):
                known[n] = w if isinstance(n.op, EigenValues) else turned
            elif isinstance(n.op, Slice) and isinstance(n.args[0].op, EigenVectors):
                # The signs of vectors that are not read need no regions.
                read = slice_axes(W, n.op.start, n.op.count, n.op.step)
                known[n] = _signed(read, slice_axis(signs, 0, n.op.start[1], n.op.count[1], n.op.step[1]))
        claims = [
            (matmul(matrix, W), matmul(W, diagonal_matrix(w))),
            (matmul(matrix_transpose(W), W), eye(w.shape[0])),
        ]
        apart = [slice_axis(w, 0, k, 1) for k in range(w.shape[0])]
        yield list(rebuild(rebuild(outputs, known), replaced)), claims, apart


def _signed(vectors: Node, signs: Node) -> Node:
    """Columns times the signs of numbers."""
    return matmul(vectors, diagonal_matrix(apply(sympy.sign, signs)))


def _ways(a: Node, size: int) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """A in new inputs, with the vectors V of a matrix of this size, or V and σ of one of twice the size."""
    m, n = a.shape
    if m == n == size:
        V, w, rest = _orthogonal(n), _fresh("w", (n,)), _fresh("R", (n, n))
        symmetric = matmul(V, matmul(diagonal_matrix(w), matrix_transpose(V)))
        yield add(symmetric, sub(rest, matrix_transpose(rest))), (V,)
        yield add(symmetric, matrix_transpose(Node.of(Triangle(0), (rest,)))), (V,)
    if 2 * m == 2 * n == size:
        sigma, U, V = _fresh("sigma", (n,), positive=True), _turned(_orthogonal(n)), _orthogonal(n)
        yield matmul(U, matmul(diagonal_matrix(sigma), matrix_transpose(V))), (V, sigma)


def _system(matrix: Node, V: Node, sigma: Node | None = None) -> tuple[Node, Node]:
    """w and W of a symmetric matrix from its vectors V, or of [[0, B], [Bᵀ, 0]] from right vectors of B.

    There B V = U diag(σ), and the vectors of ±σ are (U, ±V)/√2: −σ from the first on, then σ from the last.
    """
    n = V.shape[-1]
    if sigma is None:
        return contract([["i", "k"], ["i", "j"], ["j", "k"]], ["k"], V, matrix, V), V
    B = slice_axes(matrix, (0, n), (n, n), (1, 1))
    U = matmul(matmul(B, V), diagonal_matrix(div(constant(1), sigma)))
    low, high = concatenate([U, neg(V)], 0), slice_axis(concatenate([U, V], 0), 1, n - 1, n, -1)
    root = power(constant(2), constant(Fraction(1, 2)))
    w = concatenate([neg(sigma), slice_axis(sigma, 0, n - 1, n, -1)], 0)
    return w, div(concatenate([low, high], 1), root)


def _orthogonal(n: int) -> Node:
    """Every orthogonal matrix of determinant 1."""
    free = _fresh("S", (n, n))
    skew, identity = sub(free, matrix_transpose(free)), eye(n)
    return solve(add(identity, skew), sub(identity, skew))


def _turned(Q: Node) -> Node:
    """The matrix with its last column times 1 or −1."""
    n = Q.shape[-1]
    sign = apply(sympy.sign, _fresh("d", (1,)))
    return matmul(Q, diagonal_matrix(concatenate([broadcast_to(constant(1), (n - 1,)), sign], 0)))


def _fresh(name: str, shape: tuple[int, ...], positive: bool = False) -> Node:
    label = sympy.Dummy(name, positive=True) if positive else sympy.Dummy(name, real=True)
    return input_node(sympy.IndexedBase(label, shape=shape), shape)

"""Identities between matrix expressions of any size, proved in index notation.

A graph becomes a sum of contraction networks over its inputs, identity matrices, inverses,
determinants and elementwise functions; see `networks`. Two graphs with the same normal form are equal
for all values of their dimension symbols. The rules for inverses are M M⁻¹ = M⁻¹ M = 1,
(A B)⁻¹ = B⁻¹ A⁻¹, (Mᵀ)⁻¹ = (M⁻¹)ᵀ, (c M)⁻¹ = M⁻¹/c; for determinants det(A B) = det A det B and
det Mᵀ = det M.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import sympy

from symad.dims import same_dim
from symad.graph import Node, Op, topological
from symad.ops.arithmetic import Add, Mul, Pow
from symad.ops.contraction import Einsum
from symad.ops.elementwise import Apply
from symad.ops.linalg import Determinant, LogDeterminant, Solve
from symad.ops.shaping import Broadcast, Reshape
from symad.ops.sources import Constant, Dimension, Eye, Input
from symad.questions import Values, question
from symad.verification.budget import Budget, Clock, OutOfBudget
from symad.verification.networks import DELTA, Form, Network, Networks
from symad.verification.rewriting import expand_definitions
from symad.verification.terms import number


def prove_for_all_sizes(left: Node, right: Node, budget: Budget) -> tuple[bool, str]:
    """Whether two nodes are equal for all dimensions, and if it was not shown, why."""
    a, b = expand_definitions([left, right])
    networks = Networks(Clock(Budget(seconds=budget.proof_seconds)))
    try:
        forms: dict[Node, Form] = {}
        for node in topological([a, b]):
            forms[node] = index_form(node.op, node, tuple([forms[x] for x in node.args]), networks)
        difference = networks.add([(Fraction(1), forms[a]), (Fraction(-1), forms[b])])
        equal = networks.is_zero(difference)
    except OutOfBudget as problem:
        return False, f"index notation: {problem}"
    return equal, "" if equal else "the normal forms in index notation differ"


@question
def index_form(op: Op, y: Node, args: Values, networks: Networks) -> Any:
    """``y = op(...)`` as a sum of contraction networks, from the forms of its arguments."""


@index_form.dispatch
def no_index_form(op: Op, y: Node, args: Values, networks: Networks) -> Any:
    raise OutOfBudget(f"{type(op).__name__} has no form for all sizes")


@index_form.dispatch
def input_index_form(op: Input, y: Node, args: Values, networks: Networks) -> Any:
    return networks.single(("input", op.symbol, y.shape), y.shape)


@index_form.dispatch
def constant_index_form(op: Constant, y: Node, args: Values, networks: Networks) -> Any:
    value = number(y)
    if value is None:
        return networks.single(("constant", op.kind, op.value), ())
    return networks.constant(value)


@index_form.dispatch
def dimension_index_form(op: Dimension, y: Node, args: Values, networks: Networks) -> Any:
    """A polynomial in the dimension symbols."""
    total: Form = []
    for term in sympy.Add.make_args(sympy.expand(op.expression)):
        scale, rest = term.as_coeff_Mul()
        powers = rest.as_powers_dict().items() if rest != 1 else []
        factors = tuple((("dim", base), (), Fraction(int(e))) for base, e in powers)
        total.append((Fraction(int(scale.p), int(scale.q)), Network(factors, {})))
    return networks.collect(total)


@index_form.dispatch
def eye_index_form(op: Eye, y: Node, args: Values, networks: Networks) -> Any:
    return networks.single(DELTA, y.shape)


@index_form.dispatch
def add_index_form(op: Add, y: Node, args: Values, networks: Networks) -> Any:
    return networks.add([(Fraction(s), form) for s, form in zip(op.signs, args, strict=True)])


@index_form.dispatch
def mul_index_form(op: Mul, y: Node, args: Values, networks: Networks) -> Any:
    factors = [
        form if p == 1 else _power(form, arg, Fraction(-1), networks)
        for p, form, arg in zip(op.powers, args, y.args, strict=True)
    ]
    return _elementwise(factors, y.args, y, networks)


def _elementwise(forms: Sequence[Form], nodes: Sequence[Node], y: Node, networks: Networks) -> Form:
    rank = len(y.shape)
    labels = [range(rank) if node.shape else () for node in nodes]
    return networks.contract(list(zip(forms, labels, strict=True)), range(rank), dict(enumerate(y.shape)))


@index_form.dispatch
def pow_index_form(op: Pow, y: Node, args: Values, networks: Networks) -> Any:
    exponent = number(y.args[1])
    if exponent is None:
        raise OutOfBudget("a power with a variable exponent has no form for all sizes")
    return _power(args[0], y.args[0], exponent, networks)


def _power(form: Form, node: Node, exponent: Fraction, networks: Networks) -> Form:
    """Elementwise: a product of factors has its exponents multiplied, a sum becomes an atom."""
    if len(form) == 1 and not form[0][1].dims and (exponent.denominator == 1 or form[0][0] == 1):
        coefficient, network = form[0]
        whole = exponent.denominator == 1
        if whole or (len(network.factors) == 1 and network.factors[0][2] == 1):
            factors = tuple((atom, at, e * exponent) for atom, at, e in network.factors)
            if all(atom != DELTA for atom, _, _ in factors):
                scale = coefficient ** int(exponent) if whole else Fraction(1)
                return networks.simplify(scale, list(factors), {})
    if not form:
        raise OutOfBudget("a power of zero")
    name, order = networks.name(form, node.shape)
    return networks.single(("power", name), node.shape, order, exponent)


@index_form.dispatch
def apply_index_form(op: Apply, y: Node, args: Values, networks: Networks) -> Any:
    """A function of one argument is an atom known up to the order of the axes."""
    if len(args) != 1:
        raise OutOfBudget(f"{op.head.__name__} of several arguments has no form for all sizes")
    name, order = networks.name(args[0], y.args[0].shape)
    return networks.single(("function", op.head, name), y.args[0].shape, order)


@index_form.dispatch
def einsum_index_form(op: Einsum, y: Node, args: Values, networks: Networks) -> Any:
    dims = {
        label: dim
        for labels, arg in zip(op.inputs, y.args, strict=True)
        for label, dim in zip(labels, arg.shape, strict=True)
    }
    return networks.contract(list(zip(args, op.inputs, strict=True)), op.output, dims)


@index_form.dispatch
def broadcast_index_form(op: Broadcast, y: Node, args: Values, networks: Networks) -> Any:
    """Repeated axes do not occur in the form."""
    return networks.permuted(args[0], op.axes)


@index_form.dispatch
def reshape_index_form(op: Reshape, y: Node, args: Values, networks: Networks) -> Any:
    """Axes of length 1 come and go; anything else has no form."""
    old = [k for k, dim in enumerate(y.args[0].shape) if dim != 1]
    new = [k for k, dim in enumerate(y.shape) if dim != 1]
    matched = len(old) == len(new) and all(
        same_dim(y.args[0].shape[i], y.shape[j]) for i, j in zip(old, new, strict=True)
    )
    if not matched:
        raise OutOfBudget("reshaping has no form for all sizes")
    moved = dict(zip(old, new, strict=True))
    return [
        (
            c,
            Network(
                tuple((atom, tuple(moved.get(i, i) for i in at), e) for atom, at, e in network.factors),
                network.dims,
            ),
        )
        for c, network in args[0]
    ]


# ---- linear algebra -----------------------------------------------------------------------------


@index_form.dispatch
def solve_index_form(op: Solve, y: Node, args: Values, networks: Networks) -> Any:
    a, b = args
    if len(y.shape) != 2:
        raise OutOfBudget("stacks of matrices have no form for all sizes")
    n, k = y.shape
    inverse = _inverse(a, y.args[0], networks)
    return networks.contract([(inverse, ("i", "j")), (b, ("j", "k"))], ("i", "k"), {"i": n, "j": n, "k": k})


def _inverse(form: Form, node: Node, networks: Networks) -> Form:
    """M⁻¹: of a product of square matrices the product of inverses, else an atom."""
    chain = _chain(form, node)
    n = node.shape[0]
    if chain is None:
        name, order = networks.name(form, node.shape)
        atom = ("inverse", name)
        if networks.is_symmetric(form):
            networks.symmetric.add(atom)
        return networks.single(atom, node.shape, order)
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


def _chain(form: Form, node: Node) -> Any:
    """c s M_1 M_2 ... of square matrices: (c, scalar factors, [(M, whether transposed)]), or None."""
    if len(form) != 1:
        return None
    coefficient, network = form[0]
    scalars = [f for f in network.factors if not f[1]]
    rest = [f for f in network.factors if f[1]]
    if not all(len(at) == 2 and e == 1 and atom != DELTA for atom, at, e in rest) or not rest:
        return None
    if not all(same_dim(dim, node.shape[0]) for dim in network.dims.values()):
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
def determinant_index_form(op: Determinant, y: Node, args: Values, networks: Networks) -> Any:
    return _determinant(y, args[0], networks)


def _determinant(y: Node, form: Form, networks: Networks) -> Any:
    """det M = Π det of its factors, where M is a product; y is det M or its logarithm."""
    if y.shape:
        raise OutOfBudget("stacks of matrices have no form for all sizes")
    chain = _chain(form, y.args[0])
    if chain is None or chain[0] != 1 or chain[1]:
        name, _ = networks.name(form, y.args[0].shape)
        return networks.single(("determinant", name), ())
    factors: list[tuple[Hashable, tuple[int, ...], Fraction]] = []
    for matrix, _ in chain[2]:
        inverse = matrix in networks.singles
        base = networks.singles[matrix][0] if inverse else matrix
        factors.append((("determinant of", base), (), Fraction(-1 if inverse else 1)))
    return networks.simplify(Fraction(1), factors, {})


@index_form.dispatch
def log_determinant_index_form(op: LogDeterminant, y: Node, args: Values, networks: Networks) -> Any:
    determinant = _determinant(y, args[0], networks)
    name, _ = networks.name(determinant, ())
    return networks.single(("function", sympy.log, name), ())

"""Functions of matrices in the checker: their derivatives, numerically, and what is proved by them."""

from dataclasses import replace
from random import Random

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived, Proof
from symad.models.generative import gaussian_process, kernels
from symad.verification.checker.proofs import ForAllSizes, replay
from symad.verification.checker.terms import FREE, Refused, Terms, of_matrix, slope_of_matrix
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.with_proofs import claims_of
from tests.verification.checker.rules_in_coq import MATRICES_NOT_IN_COQ

n = sp.Symbol("n", integer=True, positive=True)

VALUES = {
    "inverse": lambda a: a**-1,
    "cholesky": lambda a: mpmath.cholesky(a),
    "det": lambda a: mpmath.matrix([[mpmath.det(a)]]),
}


def test_functions_of_matrices_are_said_not_to_be_in_coq():
    assert MATRICES_NOT_IN_COQ.keys() == VALUES.keys()


def value_of(term, at):
    """The value of a term at given values of variables, functions of matrices by mpmath."""
    args = [value_of(a, at) for a in term.args]
    if term.kind in ("number", "variable"):
        return at[term] if term in at else mpmath.mpf(term.data.numerator) / term.data.denominator
    if term.kind == "sum":
        return mpmath.fsum(args)
    if term.kind == "product":
        return mpmath.fprod(args)
    (name, i, j), n = term.data, int(np.sqrt(len(args)))
    return VALUES[name](mpmath.matrix(n, n) + mpmath.matrix(np.reshape(args, (n, n)).tolist()))[i, j]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("n", [2, 3])
def test_the_derivative_of_each_function_is_that_of_its_values(name, n):
    """Along a symmetric direction, as the Cholesky factor is of a symmetric matrix."""
    terms, rng = Terms(), Random(1)
    a = [terms.made("variable", k) for k in range(n * n)]
    with mpmath.workdps(40):
        half = mpmath.matrix([[rng.uniform(-1, 1) for _ in range(n)] for _ in range(n)])
        start, way = half * half.T + mpmath.eye(n), half + half.T
        at = dict(zip(a, start, strict=True))
        places = [(i, j) for i in range(n) for j in range(i + 1)] if name != "det" else [(0, 0)]
        for i, j in places:
            slopes = [slope_of_matrix(of_matrix(name, i, j, a), *divmod(k, n)) for k in range(n * n)]
            found = mpmath.fsum(value_of(s, at) * d for s, d in zip(slopes, way, strict=True))
            exact = mpmath.diff(lambda t, i=i, j=j: VALUES[name](start + t * way)[i, j], 0)
            assert mpmath.almosteq(found, exact, 1e-20)


def at_indices(term, at, size, arrays):
    """The value of a term with index symbols at positions; all axes are of one size."""
    kind, data = term.kind, term.data
    if kind == "number":
        return mpmath.mpf(data.numerator) / data.denominator
    if kind == "variable":
        return arrays[data[0]][tuple(at.get(i, i) for i in data[1])]
    if kind == "delta":
        return mpmath.mpf(at.get(data[0], data[0]) == at.get(data[1], data[1]))
    if kind == "total":
        symbols = [i for i, _ in data]
        places = np.ndindex(*[size] * len(symbols))
        inner = [{**at, **dict(zip(symbols, place, strict=True))} for place in places]
        return mpmath.fsum(at_indices(term.args[0], where, size, arrays) for where in inner)
    if kind == "call" and isinstance(data, tuple):
        name, i, j, p, q, _ = data
        rows = [
            [at_indices(term.args[0], {**at, p: r, q: s}, size, arrays) for s in range(size)]
            for r in range(size)
        ]
        where = (0, 0) if name == "det" else (at.get(i, i), at.get(j, j))
        return VALUES[name](mpmath.matrix(rows))[where]
    args = [at_indices(a, at, size, arrays) for a in term.args]
    if kind == "call":
        return getattr(mpmath, data)(*args)
    power = mpmath.mpf(data.numerator) / data.denominator if kind == "power" else 1
    return {"sum": mpmath.fsum, "product": mpmath.fprod}.get(kind, lambda x: x[0] ** power)(args)


WHOLE = {
    "an element of an inverse": lambda K: np.linalg.inv(K),
    "the logarithm of a determinant": lambda K: np.log(np.linalg.det(K)),
    "a square of an inverse": lambda K: np.linalg.inv(K @ K + K.T),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_derivatives_at_index_symbols_are_those_of_values(name, order):
    """What the checker writes out for matrices of symbolic size, at size 3, by numeric derivatives."""
    f = symad.trace(WHOLE[name], [(n, n)])
    (y,) = f.output_nodes
    places = [FREE + k for k in range(len(y.shape) + 2 * order)]  # of the value, and of what it is by
    writing, position = ForAllSizes(Terms()), iter(places)
    term = writing.element(y, tuple(next(position) for _ in y.shape))
    for _ in range(order):
        by = (next(position), next(position))
        term = writing.moved(term, {node.op: writing.unit(by) for node in f.input_nodes}, {})
    rng, size = Random(2), 3
    with mpmath.workdps(30):
        start = mpmath.matrix([[rng.uniform(-1, 1) + 3 * (i == j) for j in range(size)] for i in range(size)])
        for _ in range(2):
            at = {i: rng.randrange(size) for i in places}
            steps = [(at[i], at[j]) for i, j in zip(*[iter(places[len(y.shape) :])] * 2, strict=True)]
            out = tuple(at[i] for i in places[: len(y.shape)])

            def moved(*t, steps=steps, out=out):
                a = start.copy()
                for d, (r, s) in zip(t, steps, strict=True):
                    a[r, s] += d
                b = a * a + a.T if "square" in name else a
                return mpmath.log(mpmath.det(b)) if "determinant" in name else (b**-1)[out]

            found = at_indices(term, at, size, {node.op: start for node in f.input_nodes})
            exact = mpmath.diff(moved, (0,) * order, (1,) * order)
            assert mpmath.almosteq(found, exact, 1e-8, 1e-8)


def _quadratic(n):
    A, b = sp.MatrixSymbol("A", n, n), sp.MatrixSymbol("b", n, 1)
    return b.T * A.inv() * b, A


REPLAYED = {
    "an inverse": lambda: symad.check(*_quadratic(2)),
    "a log determinant": lambda: symad.check(sp.log(sp.Determinant(sp.MatrixSymbol("A", 3, 3)))),
    "a Gaussian process": lambda: symad.check(
        gaussian_process.log_likelihood(kernels.variance * kernels.rbf()).at(
            {gaussian_process.N: 2, gaussian_process.D: 1}
        ),
        wrt=["theta"],
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", REPLAYED)
def test_derivatives_of_functions_of_matrices_are_replayed(name):
    certificate = REPLAYED[name]()
    assert certificate.checked, str(certificate)


WRONG = {
    "no transpose": lambda A, B: -(B @ B),
    "the sign": lambda A, B: (B @ B).T,
    "one inverse": lambda A, B: -B.T,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_neighbours_of_the_derivative_of_an_inverse_are_refuted(name):
    f = symad.trace(lambda A: np.trace(np.linalg.inv(A)), [(3, 3)])
    right = symad.trace(lambda A: -(np.linalg.inv(A) @ np.linalg.inv(A)).T, [(3, 3)])
    wrong = symad.trace(lambda A: WRONG[name](A, np.linalg.inv(A)), [(3, 3)])
    assert symad.verify(f, gradient=right).checked
    assert symad.verify(f, gradient=wrong).status == "refuted"


@pytest.mark.thorough
def test_changed_steps_are_refused():
    f = symad.trace(lambda A: np.exp(2 * np.linalg.cholesky(A + A.T).sum()), [(2, 2)])
    certificate, refused = symad.check(f), 0
    claims = claims_of(certificate.comparisons)
    for proof in certificate.proofs:
        for k, (number, rule, data) in enumerate(proof.steps):
            steps = (*proof.steps[:k], (number + 1, rule, data), *proof.steps[k + 1 :])
            with pytest.raises(Refused):
                replay(claims, replace(proof, steps=steps, digest=digest_of(proof.goals, steps)))
            refused += 1
    assert refused


# ---- all sizes ----------------------------------------------------------------------------------------


def kernel(X, length, v, s):
    """v exp(−|x − x'|²/(2 length²)) + s I for points X (n,), and its first part."""
    gap = X[:, None] - X[None, :]
    smooth = v * np.exp(-gap * gap / (2 * length**2))
    return smooth + s * np.eye(X.shape[0]), smooth, gap


LIKELIHOODS = {
    "a determinant": lambda K, y: -(y @ np.linalg.solve(K, y)) / 2 - np.log(np.linalg.det(K)) / 2,
    "slogdet": lambda K, y: -(y @ np.linalg.inv(K) @ y) / 2 - np.linalg.slogdet(K)[1] / 2,
}


def score(K, y):
    """(a aᵀ − K⁻¹)/2 and a = K⁻¹ y (Rasmussen and Williams 2006, equation 5.9)."""
    inverse = np.linalg.inv(K)
    a = inverse @ y
    return (np.outer(a, a) - inverse) / 2, a


def gradient_of_likelihood(X, y, length, v, s, change=lambda B: B):
    """½ tr((a aᵀ − K⁻¹) ∂K) by each point and parameter, and −a."""
    K, smooth, gap = kernel(X, length, v, s)
    B, a = score(K, y)
    B = change(B)
    part = B * smooth
    return (
        -2 * (part * gap).sum(axis=1) / length**2, -a,
        (part * gap * gap).sum() / length**3, np.trace(B @ smooth) / v, np.trace(B),
    )  # fmt: skip


def likelihood_and_gradient(form, size, change=lambda B: B):
    shapes = [(size,), (size,), (), (), ()]
    f = symad.trace(lambda X, y, *p: LIKELIHOODS[form](kernel(X, *p)[0], y), shapes)
    return f, symad.trace(lambda *x: gradient_of_likelihood(*x, change=change), shapes)


@pytest.mark.thorough
@pytest.mark.parametrize("form", LIKELIHOODS)
@pytest.mark.parametrize("size", [n, 7], ids=str)
def test_gradients_of_likelihoods_of_gaussian_processes_are_proved_for_all_sizes(form, size):
    f, found = likelihood_and_gradient(form, size)
    certificate = symad.verify(f, gradient=found, seed=1)
    assert certificate.status == "proved" and certificate.checked, str(certificate)
    again = symad.verification.Certificate.from_json(certificate.to_json()).recheck()
    assert again.status == "proved" and again.checked


CHANGED = {
    "a factor": lambda B: 2 * B,
    "the sign": lambda B: -B,
    "a small term": lambda B: B + B * B * 2.0**-20,
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGED)
def test_wrong_gradients_of_likelihoods_are_refuted_for_all_sizes(change):
    f, found = likelihood_and_gradient("a determinant", n, CHANGED[change])
    assert symad.verify(f, gradient=found, seed=1).status == "refuted"


MATRIX_RULES = {
    "a quadratic form": (
        lambda A, y: y @ np.linalg.solve(A, y),
        lambda A, y: -np.outer(np.linalg.solve(A.T, y), np.linalg.solve(A, y)),
        lambda A, y: -np.outer(np.linalg.solve(A, y), np.linalg.solve(A.T, y)),
    ),
    "log det": (
        lambda A, y: np.log(np.linalg.det(A)) + 0 * y.sum(),
        lambda A, y: np.linalg.inv(A).T,
        lambda A, y: np.linalg.inv(A),
    ),
    "det": (
        lambda A, y: np.linalg.det(A) + 0 * y.sum(),
        lambda A, y: np.linalg.det(A) * np.linalg.inv(A).T,
        lambda A, y: np.linalg.inv(A).T,
    ),
    "log det of a symmetric matrix": (
        lambda A, y: np.log(np.linalg.det(A + A.T)) + 0 * y.sum(),
        lambda A, y: 2 * np.linalg.inv(A + A.T),
        lambda A, y: np.linalg.inv(A + A.T),
    ),
}


@pytest.mark.parametrize("name", MATRIX_RULES)
def test_derivatives_of_matrices_are_proved_for_all_sizes_and_neighbours_are_refuted(name):
    f, right, wrong = (symad.trace(g, [(n, n), (n,)]) for g in MATRIX_RULES[name])
    proved = symad.verify(f, [f.inputs[0]], gradient=right, seed=1)
    assert proved.status == "proved" and "for all n" in proved.entries[0].claim
    assert symad.verify(f, [f.inputs[0]], gradient=wrong, seed=1).status == "refuted"


def test_matrices_of_other_sizes_are_other_matrices():
    """det(1 + I) of order n is n + 1: the same formula of its elements for each order, and another value."""
    m = sp.Symbol("m", integer=True, positive=True)
    sides = [
        symad.trace(lambda x, d=d: x.sum() * np.linalg.det(symad.functions.eye(d) + 1), [(n,)])
        for d in (2, 3)
    ]
    certificate = symad.equal(*sides, seed=1)
    assert certificate.status not in ("proved", "tested") and not certificate.checked
    f = symad.trace(
        lambda A, B: np.linalg.det(A * 0 + 1 + symad.functions.eye(n)) + 0 * B.sum(), [(n, n), (m, m)]
    )
    g = symad.trace(
        lambda A, B: np.linalg.det(B * 0 + 1 + symad.functions.eye(m)) + 0 * A.sum(), [(n, n), (m, m)]
    )
    claim = Derived(Derivative("value", f.output_nodes), g.output_nodes)
    assert not find_for_all_sizes([claim], [(0, 0, 0)]).proofs


@pytest.mark.thorough
def test_changed_answers_about_matrices_are_refused():
    """Other atoms, axes in another order, other renamings, and symmetry that was not shown."""
    f, found = likelihood_and_gradient("a determinant", n)
    certificate, refused = symad.verify(f, gradient=found, seed=1), 0
    claims = claims_of(certificate.comparisons)
    for proof in certificate.proofs:
        plan, *parts = proof.steps
        for place, (opened, answers) in enumerate(parts):
            for k, (number, answer) in enumerate(answers):
                if not (answer and isinstance(answer[0], int)):
                    continue  # about sums
                atom, order, maps = answer
                for other in ([atom + 1, order, maps], [-atom, order, maps], [atom - 1, order, maps]):
                    changed = (opened, [*answers[:k], [number, other], *answers[k + 1 :]])
                    steps = (plan, *parts[:place], changed, *parts[place + 1 :])
                    with pytest.raises(Refused):
                        replay(claims, replace(proof, steps=steps, digest=digest_of(proof.goals, steps)))
                    refused += 1
    assert refused


def test_symmetry_is_shown_and_not_said():
    """The step that calls a matrix symmetric is refused for one that is not."""
    f = symad.trace(lambda A: np.linalg.inv(A)[:, 0].sum() * 0 + np.trace(np.linalg.inv(A) @ A.T), [(n, n)])
    g = symad.trace(lambda A: np.trace(np.linalg.inv(A) @ A), [(n, n)])
    claim = Derived(Derivative("value", f.output_nodes), g.output_nodes)
    assert not find_for_all_sizes([claim], [(0, 0, 0)]).proofs
    for number in range(1, 12):
        for atom in range(-4, 0):
            step = [number, [atom, [1, 0], [[[0, []]]]]]
            with pytest.raises(Refused):
                replay([claim], Proof((0,), ((0, 0, 0),), ((), ((), (step,))), 0, "networks"))

"""Derivatives along directions for all sizes: the checker derives them; mutants and misfits are refused."""

import random
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.claims import Derivative, Derived
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import inner
from symad.ops.basic.sources import constant, input_node
from symad.verification.checker.proofs import ForAllSizes
from symad.verification.checker.terms import Refused, Terms
from symad.verification.own import bilinear_reverse, curvatures, directions
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.with_proofs import _defined as claims_defined
from symad.verification.proof.with_proofs import derived_for_all_sizes
from symad.verification.users import with_inputs_of

T, n, d, k = sp.symbols("T n d k", integer=True, positive=True)


def layer_norm(x, scale):
    c = x - x.mean(-1, keepdims=True)
    return ((c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * scale) ** 3).sum()


def masked(scores, v):
    """Rows of weights over the positions up to their own, written with −∞."""
    i = np.arange(scores.shape[0])
    return (functions.softmax(np.where(i <= i[:, None], scores, -np.inf)) @ v).sum()


def hidden(f):
    return lambda X, y, W, b, u: ((f(X @ W + b) @ u - y) ** 2).mean()


LAYERS = [(n, d), (n,), (d, k), (k,), (k,)]
DERIVED = {
    "attention": (lambda q, s, v: (functions.attention(q, s, v) ** 2).sum(), [(T, d), (n, d), (n, k)]),
    "causal attention": (
        lambda q, s, v: (functions.attention(q, s, v, causal=True) ** 2).sum(), [(T, d), (T, d), (T, k)],
    ),
    "windowed attention": (
        lambda q, s, v: functions.attention(q, s, v, mask=lambda b, h, i, j: abs(i - j) < 3).sum(),
        [(T, d), (T, d), (T, k)],
    ),
    "a mask by hand": (masked, [(T, T), (T, d)]),
    "Huber loss": (lambda r: np.where(abs(r) < 1, r * r / 2, abs(r) - 0.5).sum(), [(n,)]),
    "a branch without value": (lambda r: np.where(r > 0, np.log(r), r * r).sum(), [(n,)]),
    "cross-entropy": (lambda X, Y, W: -(Y * functions.log_softmax(X @ W)).sum(), [(n, d), (n, k), (d, k)]),
    "layer norm": (layer_norm, [(T, d), (d,)]),
    "logistic loss": (lambda X, y, w: np.logaddexp(0, -y * (X @ w)).sum(), [(n, d), (n,), (d,)]),
    "SiLU": (hidden(functions.silu), LAYERS),
    "tanh": (hidden(np.tanh), LAYERS),
    "ReLU": (hidden(functions.relu), LAYERS),
    "a vector": (lambda X, w: np.tanh(X @ w), [(n, d), (d,)]),
}  # fmt: skip
SLOW = {
    "GELU": (hidden(functions.gelu), LAYERS),
    "self-attention": (
        lambda X, q, s, v: (functions.attention(X @ q, X @ s, X @ v) ** 2).sum(),
        [(T, d), (d, k), (d, k), (d, k)],
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*DERIVED, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_checker_derives_them_and_needs_no_choice_of_sizes(name):
    f, shapes = (DERIVED | SLOW)[name]
    certificate = symad.check(symad.trace(f, shapes), seed=1)
    assert {e.status for e in certificate.entries} == {"proved"}, str(certificate)
    assert not any(" at " in e.name for e in certificate.entries)
    assert not any("is right" in text for text in certificate.assumes)


def claims_of(f, shapes):
    """The claims ⟨∇f, v⟩ and uᵀ H v of a function of one number."""
    graph = symad.trace(f, shapes)
    x, y = graph.input_nodes, graph.output_nodes
    u, v = directions(x, "u", set()), directions(x, "v", set())
    bend = curvatures(y[0], x, u, v)["forward-over-reverse"]
    return [
        (Derivative("slope", y, x, v), bilinear_reverse([y[0]], x, v)),
        (Derivative("curvature", y, x, v, u), bend),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in DERIVED if name != "a vector"])
def test_mutants_are_not_derived(name):
    for derivative, right in claims_of(*DERIVED[name]):
        x, v = derivative.wrt[0], derivative.v[0]
        more = inner(x, v) if x.shape else mul(x, v)
        millionth = constant(1 + Fraction(1, 10**6))
        for wrong in (mul(constant(-1), right), mul(millionth, right), add(right, more), add(right, right)):
            assert not derived_for_all_sizes(derivative, (wrong,), "")
        assert derived_for_all_sizes(derivative, (right,), "")


def refused(derivative, *outputs, k=0):
    with pytest.raises((Refused, IndexError)):
        ForAllSizes(Terms()).lemmas(Derived(derivative, outputs), [k], ())
    return True


def test_misfits_are_refused():
    x, w, v = (input_node(sp.Symbol(name), (n,)) for name in "xwv")
    y, turned = inner(x, x), input_node(sp.Symbol("t"), (d,))
    two = mul(constant(2), inner(x, v))
    assert not refusals([Derivative("slope", (y,), (x,), (v,))], two)
    for misfit in (
        Derivative("slope", (y,), (x,), (turned,)),  # another length
        Derivative("slope", (y,), (x, x), (v, v)),  # an input twice
        Derivative("slope", (y,), (x,), (x,)),  # a direction that is differentiated as well
        Derivative("slope", (y,), (x,)),  # no direction
        Derivative("slope", (y,), (mul(x, w),), (v,)),  # by what is no input
        Derivative("slope", (y, y), (x,), (v,)),  # two numbers
        Derivative("slope", (mul(x, x),), (x,), (v,)),  # no number
        Derivative("curvature", (y,), (x,), (v,), (turned,)),
        Derivative("pushforward", (mul(x, x),), (x,), (v,), (w,)),
    ):
        assert refused(misfit, two)
    assert refused(Derivative("gradient", (y,), (x,)), two, y, k=1)  # f is no second part of its gradient


def refusals(derivatives, output):
    """Why claims with this output are not derived."""
    return [r for a in derivatives for r in find_for_all_sizes([Derived(a, (output,))], [(0, 0, 0)]).reasons]


EQUAL = {
    "exp of a logarithm": (lambda x: np.exp(2 * np.log(x)), lambda x: x * x),
    "softmax by logarithms": (
        lambda x: np.exp(x - functions.logsumexp(x)), lambda x: functions.softmax(x),
    ),
    "roots of numbers": (lambda x: x / np.sqrt(2) * np.sqrt(8), lambda x: 2 * x),
    "sigmoid turned": (lambda x: functions.sigmoid(-x), lambda x: 1 - functions.sigmoid(x)),
    "a condition as a number": (lambda x: np.where(x > 0, 1, 0) * x, lambda x: (x > 0) * x),
}  # fmt: skip
DIFFERENT = {
    "exp of half a logarithm": (lambda x: np.exp(np.log(x) / 2), lambda x: x),
    "roots of other numbers": (lambda x: x / np.sqrt(2) * np.sqrt(6), lambda x: 2 * x),
    "sigmoid not turned": (lambda x: functions.sigmoid(-x), lambda x: functions.sigmoid(x)),
    "tanh is odd": (lambda x: np.tanh(-x), lambda x: np.tanh(x)),
    "another condition": (lambda x: np.where(x > 0, 0, 1) * x, lambda x: (x > 0) * x),
    "exp turned": (lambda x: np.exp(-x) * np.exp(x), lambda x: np.exp(x)),
}


def vector(f):
    return symad.trace(lambda x: f(x), [(n,)])


@pytest.mark.parametrize("name", EQUAL)
def test_relations_for_all_sizes(name):
    certificate = symad.equal(*map(vector, EQUAL[name]), seed=1)
    assert certificate.status == "proved", str(certificate)


@pytest.mark.parametrize("name", DIFFERENT)
def test_relations_that_do_not_hold(name):
    assert symad.equal(*map(vector, DIFFERENT[name]), seed=1).status == "refuted"


UNARY = {
    "exp": np.exp, "tanh": np.tanh, "sigmoid": functions.sigmoid, "softplus": functions.softplus,
    "gelu": functions.gelu, "silu": functions.silu, "softmax": functions.softmax, "minus": lambda x: -x,
    "square": lambda x: x * x, "root": lambda x: np.sqrt(x * x + 2), "log": lambda x: np.log(x * x + 1),
    "inverse": lambda x: 1 / (1 + np.exp(x)), "norm": lambda x: x / np.sqrt((x * x).sum() + 1),
    "relu": functions.relu, "half": lambda x: x / np.sqrt(2), "lse": lambda x: x - functions.logsumexp(x),
}  # fmt: skip


def composed(names):
    def f(x):
        for name in names:
            x = UNARY[name](x)
        return x

    return f


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_for_all_sizes_agrees_at_small_ones(seed):
    """Of compositions of functions that differ in one place, mostly none are equal."""
    draw = random.Random(seed)
    proved = 0
    for _ in range(60):
        names = draw.choices(list(UNARY), k=3)
        others = [*names]
        for _ in range(draw.choice([0, 1, 1, 2])):
            others[draw.randrange(3)] = draw.choice(list(UNARY))
        a, b = (symad.trace(composed(c), [(n,)]) for c in (names, others))
        left, right = (with_inputs_of(a, g).output_nodes for g in (a, b))
        claim = claims_defined([Derived(Derivative("value", left), right)])
        if find_for_all_sizes(claim, [(0, 0, 0)]).goals:
            proved += 1
            for size in (1, 2, 3):
                x = np.random.default_rng(size).uniform(-1.5, 1.5, size)
                np.testing.assert_allclose(composed(names)(x), composed(others)(x), rtol=1e-9, atol=1e-12)
    assert proved > 5


@pytest.mark.thorough
def test_large_arrays_of_known_size_are_proved_as_wholes():
    """Written out, these derivatives have a hundred thousand terms."""
    graph = symad.trace(lambda q, s, v: (functions.attention(q, s, v) ** 2).sum(), [(48, 16)] * 3)
    certificate = symad.check(graph, seed=1)
    assert certificate.status == "proved" and all(e.checked for e in certificate.entries)

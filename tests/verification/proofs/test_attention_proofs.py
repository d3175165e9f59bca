"""Proofs about attention: comparisons with −∞, rows without keys, wrong derivatives, changed steps."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.claims import Derivative, Derived, Proof
from symad.core.graph import Graph
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, select
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Refused
from symad.verification.decide import decide
from symad.verification.own import (
    bilinear_forward,
    bilinear_reverse,
    curvatures,
    directions,
)
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.whole_proofs import find
from symad.verification.proof.with_proofs import claims_of

LIMITS = Limits(500_000, 4000)
x, y = sp.symbols("x y", real=True)


def above(node):
    """5 where −∞ is less than a value, else 7."""
    return select(compare("<", constant(-np.inf), node), constant(5), constant(7))


def is_proved(left, right):
    return bool(find([Derived(Derivative("value", (left,)), (right,))], [(0, 0, 0)], LIMITS).goals)


@pytest.mark.parametrize("expression", [x, sp.log(1 + sp.exp(x)), sp.log(x**2 + 1), 1 / sp.sqrt(x**2 + 2)])
def test_what_has_a_value_everywhere_is_above_minus_infinity(expression):
    (node,) = symad.trace(expression, inputs=[x]).output_nodes
    assert is_proved(above(node), constant(5))
    assert not is_proved(above(node), constant(7))


@pytest.mark.parametrize(
    "expression", [sp.log(sp.Max(x, 0)), sp.log(x), sp.log(x + sp.Abs(x)), sp.log(sp.exp(x) - 1)]
)
def test_a_logarithm_that_may_be_minus_infinity_is_not_above_it(expression):
    (node,) = symad.trace(expression, inputs=[x]).output_nodes
    for value in (5, 7):
        assert not is_proved(above(node), constant(value))


def test_minus_infinity_is_not_above_itself():
    assert is_proved(above(constant(-np.inf)), constant(7))
    assert not is_proved(above(constant(-np.inf)), constant(5))


def strict(q, k):
    """Row 0 sees no key."""
    return functions.attention(q, k, k, mask=lambda b, h, i, j: sp.Lt(j, i))


def hidden(q, k):
    """The same by scores of −∞, with one more score for row 0, whose output is not used."""
    s = q @ k.T / np.sqrt(2.0) + np.array([[0, -np.inf, -np.inf], [0, -np.inf, -np.inf], [0, 0, -np.inf]])
    return functions.softmax(s, 1)[1:] @ k


@pytest.mark.thorough
@pytest.mark.parametrize("layer", [strict, hidden])
def test_rows_without_keys_and_scores_of_minus_infinity(layer):
    f = symad.trace(lambda q, k: (layer(q, k) ** 2).sum(), [(3, 2), (3, 2)])
    gradient = symad.gradient(f)
    held = symad.verify(f, gradient=gradient, seed=1)
    assert held.status in ("proved", "tested"), str(held)
    for factor in (2, sp.Rational(1000001, 1000000)):
        times = [mul(g, constant(factor)) for g in gradient.output_nodes]
        wrong = gradient.with_outputs(times, gradient.structure)
        assert symad.verify(f, gradient=wrong, seed=1).status == "refuted"


def normed(x, scale):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + 2.0**-10) * scale


def block(x, scale, q, W):
    h = normed(x, scale)
    y = x + functions.attention(h @ q, h, h, causal=True)
    return ((y + np.tanh(normed(y, scale) @ W)) ** 2).sum()


@pytest.fixture(scope="module")
def claim():
    f = symad.trace(block, [(2, 3), (3,), (3, 3), (3, 3)])
    nodes, (value,) = f.input_nodes, f.output_nodes
    u, v = directions(nodes, "u", set()), directions(nodes, "v", set())

    def comparison(kind, side, name):
        bends = curvatures(value, nodes, u, v)
        left = bilinear_reverse([value], nodes, v) if kind == "slope" else bends[name]
        one, other = (Graph((*nodes, *u, *v), (node,)) for node in (left, side(left, nodes, value, v)))
        about = Derivative(kind, (value,), nodes, v, u if kind == "curvature" else ())
        mode = "gradient (forward)" if name == "forward" else name
        return Comparison("a product", one, ("⟨∇f, v⟩",), derivative=about, right=other, right_name=mode)

    return comparison


WRONG = {
    "doubled": lambda side, *_: mul(side, constant(2)),
    "a millionth more": lambda side, *_: mul(side, constant(sp.Rational(1000001, 1000000))),
    "another term": lambda side, *_: add(side, mul(constant(sp.Rational(1, 10**6)), apply(sp.tanh, side))),
}


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [*list(WRONG)[:2], pytest.param("another term", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["slope", pytest.param("curvature", marks=pytest.mark.slow)])
def test_wrong_derivatives_of_a_block_are_refuted(claim, kind, wrong):
    made = decide("", [claim(kind, WRONG[wrong], "reverse-over-reverse")], seed=1)
    assert made.status == "refuted" and not made.proofs, str(made)


def in_forward_mode(side, nodes, value, v):
    return bilinear_forward([value], nodes, v)


@pytest.mark.thorough
def test_changed_lemmas_are_refused(claim):
    """Pairs of other nodes, other nodes that are opened, and answers that are left out."""
    claims = claims_of([claim("slope", in_forward_mode, "forward")])
    (proof,) = find_for_all_sizes(claims, [(0, 0, 0)], {0: "v"}).proofs
    assert replay(claims, proof) > 100
    ((letter, pairs),), *parts = proof.steps
    rng, count = np.random.default_rng(1), len(claims[0].nodes)

    def changed(plan, parts):
        with pytest.raises(Refused):
            replay(claims, Proof(proof.claims, proof.goals, (plan, *parts), 0, proof.way))

    for k in map(int, rng.choice(len(pairs), 8, replace=False)):
        node, made = pairs[k]
        other = int(rng.integers(made))
        for pair in ([node, node], [made, node], [node, other], [node, count], [None, made]):
            changed([[letter, [*pairs[:k], pair, *pairs[k + 1 :]]]], parts)
        changed([[letter, pairs[:k] + pairs[k + 1 :]]], parts)
        changed([[letter, [*pairs, pairs[k]]]], [*parts[:-1], parts[k], parts[-1]])
        opened, answers = parts[k]
        for part in (([], answers), (opened, answers[1:]), ([*opened, count], answers)):
            if part != (opened, answers):
                changed([[letter, pairs]], [*parts[:k], part, *parts[k + 1 :]])
        changed([[letter, pairs]], parts[:k] + parts[k + 1 :])


@pytest.mark.thorough
def test_recheck_replays_a_block_and_refuses_a_changed_name(claim):
    made = decide("", [claim("slope", in_forward_mode, "forward")], seed=1)
    assert made.status == "proved" and made.checked
    again = Certificate.from_json(made.to_json()).recheck()
    assert again.status == "proved" and again.proof_steps == made.proof_steps > 100

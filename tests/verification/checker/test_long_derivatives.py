"""Derivatives too long for one normal form are proved node by node."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived, Proof
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant, symbol_of
from symad.ops.elementwise.apply import apply
from symad.verification.certificate.certificate import Certificate
from symad.verification.checker.proofs import ForAllSizes, replay, written
from symad.verification.checker.terms import Refused, Terms
from symad.verification.own import (
    bilinear_forward,
    bilinear_reverse,
    curvatures,
    directions,
)
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.node_proofs import find_for_all_sizes

SWEEPS = {
    "forward-over-reverse": "Wv",
    "reverse-over-forward": "vW",
    "reverse-over-reverse": "VW",
    "forward-over-forward": "vw",
}


def normed(x, gamma):
    centred = x - x.mean(-1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 2.0**-10)


def layer(x, gamma, W):
    return x + np.tanh(normed(x, gamma) @ W)


def two_layers(x, gamma, W):
    return (layer(layer(x, gamma, W), gamma, W) ** 2).sum()


@pytest.fixture(scope="module")
def model():
    f = symad.trace(two_layers, [(1, 3), (3,), (3, 3)])
    nodes = f.input_nodes
    v = directions(nodes, "v", set())
    u = directions(nodes, "u", {str(symbol_of(d)) for d in v})
    return f, nodes, v, u


def proved(claim, sweeps):
    return find_for_all_sizes([claim], [(0, 0, 0)], {0: sweeps}).goals


@pytest.mark.thorough
@pytest.mark.parametrize(("made", "sweeps"), [(bilinear_forward, "v"), (bilinear_reverse, "V")])
def test_the_gradient_of_layers_of_norms_is_proved_and_one_beside_it_is_not(model, made, sweeps):
    f, nodes, v, _ = model
    (value,) = f.output_nodes
    slope, of = made([value], nodes, v), Derivative("slope", (value,), nodes, v)
    assert proved(Derived(of, (slope,)), sweeps)
    for wrong in (
        mul(slope, constant(sp.Rational(1000001, 1000000))),
        add(slope, mul(constant(sp.Rational(1, 10**9)), apply(sp.tanh, slope))),
        made([mul(value, value)], nodes, v),
    ):
        assert not proved(Derived(of, (wrong,)), sweeps)


@pytest.mark.parametrize("mode", SWEEPS)
def test_a_product_with_the_hessian_is_proved_as_it_was_made(mode):
    f = symad.trace(lambda x, gamma, W: (layer(x, gamma, W) ** 2).sum(), [(1, 3), (3,), (3, 2 + 1)])
    (value,), nodes = f.output_nodes, f.input_nodes
    v = directions(nodes, "v", set())
    u = directions(nodes, "u", {str(symbol_of(d)) for d in v})
    made, of = curvatures(value, nodes, u, v)[mode], Derivative("curvature", (value,), nodes, v, u)
    assert proved(Derived(of, (made,)), SWEEPS[mode])
    assert not proved(Derived(replace(of, w=v), (made,)), SWEEPS[mode])


@pytest.mark.thorough
def test_check_says_proved_and_recheck_replays():
    f = symad.trace(lambda x, gamma, c: (normed(x, gamma) * c).sum(), [(3, 4), (4,), (3, 4)])
    made = symad.check(f, seed=1)
    assert len(made.entries) == 6 and made.status == "proved" and made.checked, str(made)
    again = Certificate.from_json(made.to_json()).recheck()
    assert again.status == "proved" and again.proof_steps == made.proof_steps > 100


x, y = sp.symbols("x y", real=True)


def curvature_of_a_product():
    """wᵀ H v = w₁ v₂ + w₂ v₁ of x y."""
    f = symad.trace(x * y)
    nodes, value = f.input_nodes, f.output_nodes[0]
    v = directions(nodes, "v", set())
    u = directions(nodes, "u", {"x_v", "y_v"})
    right = add(mul(u[0], v[1]), mul(u[1], v[0]))
    return Derived(Derivative("curvature", (value,), nodes, v, u), (right,))


def replayed(claim, letters):
    """The steps that a plan without pairs of nodes takes, with honest answers."""
    finder, plan = IsomorphismFinder(), [[letter, []] for letter in letters]
    ((left, right),) = ForAllSizes(Terms()).lemmas(claim, [0], [(letter, {}) for letter in letters]).values()
    assert finder.equal(left, right)
    answers = [list(step) for step in finder.found]
    return replay([claim], Proof((0,), ((0, 0, 0),), (plan, ([], answers)), 0, "networks"))


@pytest.mark.parametrize("letters", ["", "vw", "vW", "Vw", "VW", "wv", "Wv", "wV", "WV"])
def test_a_curvature_is_the_same_by_all_sweeps(letters):
    assert replayed(curvature_of_a_product(), letters) > 0


@pytest.mark.parametrize("letters", ["v", "w", "vv", "Vv", "vwv", "x", "ww", "vwVW", "v-", "X", "VWX", "vwX"])
def test_other_sweeps_are_refused(letters):
    claim = curvature_of_a_product()
    for outputs in (claim.outputs, claim.derivative.v[:1]):
        with pytest.raises((Refused, ValueError, IndexError)):
            replayed(Derived(claim.derivative, outputs), letters)
        for answers in ([], [[1, [[0, []]]]], [[1, [[0, []], [1, []]]]]):
            plan = [[letter, []] for letter in letters]
            with pytest.raises(Refused):
                replay([claim], Proof((0,), ((0, 0, 0),), (plan, ([], answers)), 0, "networks"))


def test_a_derivative_by_what_is_no_input_or_by_one_twice_is_refused():
    claim = curvature_of_a_product()
    of = claim.derivative
    (node,) = symad.trace(x + y).output_nodes
    for wrt in ((of.wrt[0], of.wrt[0]), (node, of.wrt[1])):
        wrong = Derived(replace(of, wrt=wrt), claim.outputs)
        with pytest.raises(Refused, match="inputs"):
            written([wrong], (0,))
        with pytest.raises(Refused, match="inputs"):
            ForAllSizes(Terms()).lemmas(wrong, [0], ())

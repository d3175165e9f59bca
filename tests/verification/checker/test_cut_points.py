"""Derivatives too long for one normal form are proved piece by piece, where both sides meet."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Claim, Derivative, Proof
from symad.core.graph import Graph
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant, symbol_of
from symad.ops.elementwise.apply import apply
from symad.verification.certificate.certificate import Certificate
from symad.verification.checker import terms
from symad.verification.checker.proofs import replay, written
from symad.verification.checker.terms import Refused
from symad.verification.measuring.directional import curvatures, directions, slope_forward, slope_reverse
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.whole_proofs import find

LIMITS = Limits(500_000, 4000)
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
    return find([claim], [(0, 0, 0)], LIMITS, {0: sweeps}).goals


@pytest.mark.parametrize(("made", "sweeps"), [(slope_forward, "v"), (slope_reverse, "V")])
def test_the_gradient_of_layers_of_norms_is_proved_and_one_beside_it_is_not(model, made, sweeps):
    f, nodes, v, _ = model
    (value,) = f.output_nodes
    slope, of = made(value, nodes, v), Derivative("slope", (value,), nodes, v)
    assert proved(Claim(of, (slope,)), sweeps)
    for wrong in (
        mul(slope, constant(sp.Rational(1000001, 1000000))),
        add(slope, mul(constant(sp.Rational(1, 10**9)), apply(sp.tanh, slope))),
        made(mul(value, value), nodes, v),
    ):
        assert not proved(Claim(of, (wrong,)), sweeps)


@pytest.mark.parametrize("mode", SWEEPS)
def test_a_product_with_the_hessian_is_proved_as_it_was_made(mode):
    f = symad.trace(lambda x, gamma, W: (layer(x, gamma, W) ** 2).sum(), [(1, 3), (3,), (3, 2 + 1)])
    (value,), nodes = f.output_nodes, f.input_nodes
    v = directions(nodes, "v", set())
    u = directions(nodes, "u", {str(symbol_of(d)) for d in v})
    made, of = curvatures(value, nodes, u, v)[mode], Derivative("curvature", (value,), nodes, v, u)
    assert proved(Claim(of, (made,)), SWEEPS[mode])
    assert not proved(Claim(replace(of, w=v), (made,)), SWEEPS[mode])


def test_check_says_proved_and_recheck_replays():
    f = symad.trace(lambda x, gamma, c: (normed(x, gamma) * c).sum(), [(3, 4), (4,), (3, 4)])
    made = symad.check(f, seed=1)
    assert len(made.entries) == 6 and made.status == "proved" and made.checked, str(made)
    again = Certificate.from_json(made.to_json()).recheck()
    assert again.status == "proved" and again.proof_steps == made.proof_steps > 500


def test_claims_that_are_too_long_together_are_proved_one_by_one(monkeypatch):
    f = symad.trace(lambda x, gamma, W: (layer(x, gamma, W) ** 2).sum(), [(1, 3), (3,), (3, 3)])
    nodes, (value,) = f.input_nodes, f.output_nodes
    v = directions(nodes, "v", set())
    u = directions(nodes, "u", {str(symbol_of(d)) for d in v})
    made = curvatures(value, nodes, u, v)
    claims = [Claim(Derivative("curvature", (value,), nodes, v, u), (made[mode],)) for mode in SWEEPS]
    ways = zip(claims, SWEEPS.values(), strict=True)
    alone = [len(written([claim], (0,), how)[0].terms.known) for claim, how in ways]
    together = len(written(claims, range(len(claims)), "")[0].terms.known)
    assert max(alone) < together - 1
    monkeypatch.setattr(terms, "MAX_TERMS", max(alone) + 1)
    goals = [(k, 0, 0) for k in range(len(claims))]
    assert find(claims, goals, LIMITS, dict(enumerate(SWEEPS.values()))).goals == set(goals)


x, y = sp.symbols("x y", real=True)


def curvature_of_a_product():
    """wᵀ H v = w₁ v₂ + w₂ v₁ of x y."""
    f = symad.trace(x * y)
    nodes, value = f.input_nodes, f.output_nodes[0]
    v = directions(nodes, "v", set())
    u = directions(nodes, "u", {"x_v", "y_v"})
    right = add(mul(u[0], v[1]), mul(u[1], v[0]))
    return Claim(Derivative("curvature", (value,), nodes, v, u), (right,))


@pytest.mark.parametrize("sweeps", ["", " vw", " vW", " Vw", " VW", " wv", " Wv", " wV", " WV"])
def test_a_curvature_is_the_same_by_all_sweeps(sweeps):
    claim = curvature_of_a_product()
    assert replay([claim], Proof((0,), ((0, 0, 0),), (), 0, f"elements{sweeps}")) > 0


@pytest.mark.parametrize("sweeps", ["v", "w", "vv", "Vv", "vwv", "x", "ww", "vwVW", "v w"])
def test_other_sweeps_are_refused(sweeps):
    for claim in (
        curvature_of_a_product(),
        Claim(
            curvature_of_a_product().derivative,
            Graph((), curvature_of_a_product().derivative.v[:1]).output_nodes,
        ),
    ):
        with pytest.raises(Refused):
            replay([claim], Proof((0,), ((0, 0, 0),), (), 0, f"elements {sweeps}"))


def test_a_derivative_by_what_is_no_input_or_by_one_twice_is_refused():
    claim = curvature_of_a_product()
    of = claim.derivative
    (node,) = symad.trace(x + y).output_nodes
    for wrt in ((of.wrt[0], of.wrt[0]), (node, of.wrt[1])):
        with pytest.raises(Refused, match="inputs"):
            written([Claim(replace(of, wrt=wrt), claim.outputs)], (0,), "vW")


def test_a_name_is_not_given_to_another_value():
    left, right = symad.trace(sp.sin(x + y) * (x - y), inputs=[x, y]), symad.trace(x + y, inputs=[x, y])
    claim = Claim(Derivative("value", left.output_nodes), right.output_nodes)
    writing, _ = written([claim], (0,), "")
    sums = [t.index for t in writing.terms.known.values() if t.kind == "sum"]
    assert len(sums) == 2
    first, second = [sums[0], "name", None], [sums[1], "name", [sums[0]]]
    with pytest.raises(Refused, match="calls the same is not"):
        replay([claim], Proof((0,), ((0, 0, 0),), (first, second)))
    for data in ([sums[1]], [10_000], [-1], [None], ["x"], []):  # no earlier term; a name that is a new one
        with pytest.raises(Refused):
            replay([claim], Proof((0,), ((0, 0, 0),), ([sums[0], "name", data],)))


def test_what_names_stand_for_is_put_in_where_a_step_says_so():
    a, b = (symad.trace(e, inputs=[x, y]) for e in ((x + y) * (x - y), x**2 - y**2))
    claim = Claim(Derivative("value", a.output_nodes), b.output_nodes)
    (goal,) = written([claim], (0,), "")[1].values()
    (plus, minus), (left, right) = [t.index for t in goal[0].args], [t.index for t in goal]
    names = [[plus, "name", None], [minus, "name", None], [left, "name", None]]  # generators 2, 3 and 4

    def replayed(*data):
        return replay([claim], Proof((0,), ((0, 0, 0),), (*names, [right, "name", list(data)])))

    assert replayed(left, 2, 3) == replayed(left, 3, 2) > 4
    for wrong in ([left], [left, 2], [left, 3], [left, 0, 2, 3], [left, 5, 2, 3], [left, -1], [plus, 2, 3]):
        with pytest.raises(Refused):
            replayed(*wrong)

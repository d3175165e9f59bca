"""Layers of a transformer: equal arguments are recognised without expanding them, at a cost that grows only
with the graph."""

from collections import Counter

import numpy as np
import pytest
from sympy import diff, exp, symbols

import symad
from symad import functions
from symad.core.claims import Derivative
from symad.core.graph import Graph, topological
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import constant
from symad.verification import Budget
from symad.verification.certificate.certificate import Comparison
from symad.verification.own import (
    bilinear_forward,
    bilinear_reverse,
    curvatures,
    directions,
)
from symad.verification.proof import whole_proofs, with_proofs
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.with_proofs import claims_of
from symad.verification.values.point_set import PointSet


def normed(x, scale):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * scale


def block(x, scale, q, k, v, W, U):
    h = normed(x, scale)
    y = x + functions.attention(h @ q, h @ k, h @ v, causal=True)
    return y + functions.gelu(normed(y, scale) @ W) @ U


SHAPES = [(3, 2), (2,), (2, 2), (2, 2), (2, 2), (2, 4), (4, 2)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        (lambda x, W: functions.gelu(x @ W).sum(), [(3, 8), (8, 6)]),
        (lambda q, k: functions.attention(q, k, k, causal=True).sum(), [(4, 4), (4, 4)]),
    ],
    ids=["GELU of sums", "causal attention"],
)
def test_derivatives_of_a_layer_agree_with_dual_numbers(layer, shapes):
    held = symad.check(symad.trace(layer, shapes), seed=1)
    assert held.status in ("proved", "tested"), str(held)


@pytest.mark.thorough
def test_both_modes_of_a_block_agree_and_a_changed_one_does_not():
    f = symad.trace(lambda *inputs: (block(*inputs) ** 2).sum(), SHAPES)
    nodes, (value,) = f.input_nodes, f.output_nodes
    v = directions(nodes, "v", set())
    sides = bilinear_reverse([value], nodes, v), bilinear_forward([value], nodes, v)
    modes = [Graph((*nodes, *v), (side,)) for side in (*sides, mul(sides[1], constant(1.000001)))]
    held = symad.equal(*modes[:2], seed=1, budget=Budget(proof_steps=0))
    assert held.status in ("proved", "tested"), str(held)
    assert symad.equal(modes[0], modes[2], seed=1, budget=Budget(proof_steps=0)).status == "refuted"


@pytest.mark.thorough
def test_two_modes_of_the_hessian_of_a_block_agree_and_a_changed_one_does_not():
    shapes = [(2, 4), (4,), (4, 4), (4, 4), (4, 4), (4, 4), (4, 4)]
    f = symad.trace(lambda *inputs: (block(*inputs) ** 2).sum(), shapes)
    nodes, (value,) = f.input_nodes, f.output_nodes
    u, v = directions(nodes, "u", set()), directions(nodes, "v", set())
    made = curvatures(value, nodes, u, v)
    first, second = made["forward-over-reverse"], made["reverse-over-forward"]
    sides = (first, second, mul(second, constant(1.000001)))
    modes = [Graph((*nodes, *u, *v), (side,)) for side in sides]
    held = symad.equal(*modes[:2], seed=1, budget=Budget(proof_steps=0))
    assert held.status in ("proved", "tested"), str(held)
    assert symad.equal(modes[0], modes[2], seed=1, budget=Budget(proof_steps=0)).status == "refuted"


def test_nothing_is_written_out_for_the_checker_where_no_steps_are_left_for_proofs(monkeypatch):
    asked = []
    monkeypatch.setattr(whole_proofs, "written", lambda *claim: asked.append(claim))
    x, y = symbols("x y", real=True)
    held = symad.equal((x + y) ** 2, x**2 + 2 * x * y + y**2, seed=1, budget=Budget(proof_steps=0))
    assert (held.status, held.unchecked) == ("tested", ("the work allowed was used up",))
    assert not asked


@pytest.mark.thorough
def test_the_gradient_and_all_hessians_of_a_block_are_proved():
    shapes = [(2, 4), (4,), (4, 4), (4, 4), (4, 4), (4, 4), (4, 4)]
    f = symad.trace(lambda *inputs: (block(*inputs) ** 2).sum(), shapes)
    nodes, (value,) = f.input_nodes, f.output_nodes
    u, v = directions(nodes, "u", set()), directions(nodes, "v", set())
    made = curvatures(value, nodes, u, v)
    slopes = bilinear_reverse([value], nodes, v), bilinear_forward([value], nodes, v)
    slope, bend = Derivative("slope", (value,), nodes, v), Derivative("curvature", (value,), nodes, v, u)
    sides = [(slope, s) for s in slopes] + [(bend, made[mode]) for mode in made]
    graphs = [Graph((*nodes, *u, *v), (side,)) for _, side in sides]
    claims = claims_of(
        [Comparison("", g, ("",), derivative=of, right=g) for g, (of, _) in zip(graphs, sides, strict=True)]
    )
    sweeps = dict(enumerate(("", "v", "Wv", "vW", "", "vw")))
    goals = [(k, 0, 0) for k in range(6)]
    found = find_for_all_sizes(claims, goals, sweeps)
    assert found.goals == set(goals) and found.steps > 1_000, found.reasons


def test_the_claims_of_one_certificate_share_the_definitions_of_fused_ops(monkeypatch):
    f = symad.trace(lambda q, k: functions.attention(q, k, k, causal=True).sum(), [(2, 2), (2, 2)])
    asked, answer = Counter(), with_proofs.definition
    monkeypatch.setattr(with_proofs, "definition", lambda op, y: asked.update([y]) or answer(op, y))
    made = [symad.gradient(f, mode=mode) for mode in ("reverse", "forward")]
    about = Derivative("gradient", f.output_nodes, f.input_nodes)
    claims = claims_of([Comparison("", g, ("", ""), derivative=about, right=g) for g in made])
    nodes = [n for c in claims for n in (*c.outputs, *c.derivative.function)]
    assert not any("Attention" in type(n.op).__name__ for n in topological(nodes))
    assert any("Attention" in type(y.op).__name__ for y in asked) and set(asked.values()) == {1}


def test_numbers_at_a_point_of_many_elements_are_different():
    graph = symad.trace(lambda x, y: x.sum() + y.sum(), [(20, 20), (300,)])
    for point in PointSet(graph.output_nodes).plain(4):
        drawn = [abs(v) for value in point.values() for v in value.ravel()]
        assert len(set(drawn)) == len(drawn) == 700


@pytest.mark.thorough
def test_a_sum_of_quotients_with_many_denominators_is_proved():
    """Their common denominator has a thousand terms."""
    a, b, c = symbols("a b c", real=True)
    f = sum((a * exp(b / (t + c)) - t**2) ** 2 for t in range(12))
    assert symad.check(f).checked
    right = diff(f, c)
    assert symad.verify(f, c, gradient=right).checked
    assert symad.verify(f, c, gradient=right + 2.0**-30 / (c + 11)).status == "refuted"

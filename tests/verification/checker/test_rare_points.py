"""Statements that are false at few points only, which random points do not meet: the checker refuses them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived
from symad.core.graph import Graph, Node
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Eye, constant, input_node
from symad.verification.checker.writing_out import RULES
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.whole_proofs import find
from symad.verification.users import with_inputs_of

x, y = sp.symbols("x y", real=True)
k, m = sp.symbols("k m", integer=True)
n = sp.Symbol("n", integer=True, positive=True)
FAR = 3_712_345
"""A number that no random point meets."""


def claim_of(left, right):
    a = symad.trace(left)
    b = with_inputs_of(a, symad.trace(right))
    return Derived(Derivative("value", a.output_nodes), b.output_nodes)


STEPS = {
    "an integer": (sp.Heaviside(k - FAR, 0), sp.Heaviside(k - FAR, 1)),
    "a product of integers": (sp.Heaviside(k * m - FAR, 0) * y, sp.Heaviside(k * m - FAR, 1) * y),
    "half": (sp.Heaviside(k - FAR), sp.Heaviside(k - FAR, 1)),
    "a ramp": (sp.Heaviside(sp.Max(x, 0), 0), sp.Heaviside(sp.Max(x, 0), 1)),
    "rounded": (sp.Heaviside(sp.floor(x) - FAR, 0), sp.Heaviside(sp.floor(x) - FAR, 1)),
}


@pytest.mark.parametrize("name", STEPS)
def test_the_value_of_a_step_at_0_counts_where_0_is_taken_on_a_region(name):
    left, right = STEPS[name]
    assert not find([claim_of(left, right)], [(0, 0, 0)], Limits(100_000, 2000)).proofs
    assert symad.equal(left, right).status in ("undecided", "refuted")


def test_the_value_of_a_step_at_0_does_not_count_elsewhere():
    for left, right in [
        (sp.Heaviside(x * y, 0), sp.Heaviside(x * y, 1)),
        (sp.Heaviside(x), sp.Piecewise((1, x > 0), (0, True))),
        (sp.Heaviside(x) + sp.Heaviside(-x), sp.Integer(1) + 0 * x),
    ]:
        assert symad.equal(left, right).status == "proved"
    step = symad.trace(lambda u, h: np.heaviside(u, h), [(), ()])
    assert symad.check(step).status == "proved"


def test_a_step_is_differentiated_by_its_value_at_0():
    """∂H(u, h)/∂h = [u = 0], which is 1 where a ramp is 0, and where an integer is."""
    ramp, at_0 = sp.Heaviside(sp.Max(x, 0), y), sp.Piecewise((1, x <= 0), (0, True))
    assert symad.check(ramp).status == "proved"
    assert symad.verify(ramp, y, gradient=at_0).status == "proved"
    assert symad.verify(ramp, y, gradient=0 * x).status == "refuted"
    far = sp.Heaviside(k - FAR, y)
    assert symad.verify(far, y, gradient=0 * k).status in ("undecided", "refuted")
    at_far = sp.Piecewise((1, sp.Eq(k, FAR)), (0, True))
    assert symad.verify(far, y, gradient=at_far).status in ("tested", "proved")
    steps = symad.trace(lambda u, h: np.heaviside(u, h).sum(), [(3,), (3,)])
    for mode in ("reverse", "forward"):
        by_u, by_h = symad.gradient(steps, mode=mode)(np.array([-1.0, 0, 2]), np.array([0.1, 0.2, 0.3]))
        assert by_u.tolist() == [0, 0, 0] and by_h.tolist() == [0, 1, 0]
    dual = steps(np.array([-1.0, 0, 2]), symad.Dual(np.array([0.1, 0.2, 0.3]), np.array([1.0, 10, 100])))
    assert dual.tangent == 10


def test_a_sum_over_an_identity_matrix_keeps_its_size():
    """1/Σ_ij [i = j] u_i/u_j is 1/n, and not 1."""
    u, eye = input_node(sp.MatrixSymbol("u", n, 1), (n,)), Node.of(Eye(n), ())
    inverse = Node.of(Mul((-1,)), (u,))
    total = Node.of(Einsum(((0, 1), (0,), (1,)), ()), (eye, u, inverse))
    left = Graph((u,), (Node.of(Mul((-1,)), (total,)),))
    for right, true in ((constant(1), False), (symad.trace(lambda v: 1 / np.sum(0 * v + 1), [(n,)]), True)):
        b = with_inputs_of(left, right).output_nodes[0] if true else right
        claim = Derived(Derivative("value", left.output_nodes), (b,))
        assert bool(find_for_all_sizes([claim], [(0, 0, 0)]).proofs) is true


@pytest.mark.parametrize("assumptions", [{"nonnegative": True}, {}])
def test_a_sum_of_squares_may_be_empty(assumptions):
    """[Σ u² = 0] is 0 for almost all u of at least one element, and 1 for none."""

    def with_it(u, w):
        return np.where(np.sum(u * u) == 0, 1.0, 0.0) + np.sum(w)

    shapes = [(sp.Symbol("n", integer=True, **assumptions),), (n,)]
    left, right = symad.trace(with_it, shapes), symad.trace(lambda u, w: np.sum(w), shapes)
    assert symad.equal(left, right).status != "proved"


def test_ops_with_a_rule_are_listed_one_by_one():
    """A subclass of an op is another op, and has no rule unless it gets one."""
    assert all(not set(kind.__subclasses__()) & set(RULES) for kind in RULES)

"""Roots of sums of functions of roots: norms of what a network computes from a norm, and their derivatives.

The second derivative of √u has a branch for u = 0 that contains √√u and is never taken. SymPy's derivative
has u in another form, P/Q, than symad's: the two roots are equal where the two forms of u are.
"""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, topological
from symad.derivatives.hessian import hessian
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.rewrite import rewrite

x = sp.Symbol("x", real=True)


def scaled(W, v):
    return np.tanh(W @ v / np.linalg.norm(v))


NESTED = {
    "a norm of functions of a norm": lambda: symad.trace(
        lambda W, v: np.linalg.norm(scaled(W, v)), [(2, 3), (3,)]
    ),
    "of one number": lambda: symad.trace(
        lambda a: np.sqrt(np.tanh(np.sqrt(a)) ** 2 + np.tanh(2 * a) ** 2), [()]
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NESTED)
def test_both_derivatives_are_certified(name):
    """In the Hessian of a norm of functions of a norm, roots are nested deeper than the test takes them."""
    certificate = symad.check(NESTED[name]())
    expected = {"proved", "tested"} if name == "of one number" else {"proved", "tested", "undecided"}
    assert {entry.status for entry in certificate.entries} <= expected, str(certificate)
    first = [entry for entry in certificate.entries if "∂f/∂" in entry.name]
    assert first and all(entry.status in ("proved", "tested") for entry in first)


@pytest.mark.thorough
@pytest.mark.parametrize("factor", [2, 1 + sp.Rational(1, 10**6), -1])
def test_a_changed_hessian_is_refuted(factor):
    f = NESTED["of one number"]()
    right = hessian(f, list(f.inputs))
    assert symad.verify(f, list(f.inputs), hessian=right).status in ("proved", "tested")
    times = constant(Fraction(int(sp.Rational(factor).p), int(sp.Rational(factor).q)))
    claim = Graph(f.input_nodes, tuple([mul(times, node) for node in right.output_nodes]))
    assert symad.verify(f, list(f.inputs), hessian=claim).status == "refuted"


FALSE = {
    "the other sign": (sp.sqrt(1 + sp.exp(-x)), -sp.sqrt(1 + sp.exp(x)) * sp.exp(-x / 2)),
    "another factor": (sp.sqrt(1 + sp.exp(-x)), sp.sqrt(1 + sp.exp(x)) * sp.exp(x / 2)),
    "where it is negative": (sp.sqrt((sp.exp(x) - 1) ** 2), sp.exp(x) - 1),
    "a branch for 0 that is taken": (
        sp.Piecewise((1, sp.Eq(sp.Max(x, 0), 0)), (2, True)),
        sp.Integer(2) + 0 * x,
    ),
    "of a step": (sp.Piecewise((1, sp.Eq(sp.floor(x), 0)), (2, True)), sp.Integer(2) + 0 * x),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_differs_is_refuted(name):
    left, right = FALSE[name]
    assert symad.equal(left, right).status == "refuted"


def test_a_root_of_a_sum_is_that_of_its_common_denominator():
    left, right = sp.sqrt(1 + sp.exp(-x)), sp.sqrt(1 + sp.exp(x)) * sp.exp(-x / 2)
    assert symad.equal(left, right).status in ("proved", "tested")


def test_a_branch_that_is_taken_nowhere_leaves_no_roots():
    f = symad.trace(lambda a: np.linalg.norm(np.tanh(a)), [(2,)])
    (made,) = rewrite(hessian(f, list(f.inputs)).output_nodes, Basis())
    nodes = topological([made])
    assert not any(isinstance(n.op, Select) for n in nodes)
    roots = {str(n.args[1].op.value) for n in nodes if isinstance(n.op, Pow) and "/" in str(n.args[1].op)}
    assert roots <= {"1/2"}


@pytest.mark.parametrize("size, same", [(40, False), (30, True)])
def test_an_index_may_be_the_number_that_it_is_compared_with(size, same):
    """I = 37 holds on no open set of numbers, and for one row of forty."""

    def row(extra):
        def f(a, i):
            return symad.functions.lookup(a, i) + (np.where(i == 37, 1.0, 0.0) if extra else 0.0)

        return symad.trace(f, [(size,), ()])

    status = symad.equal(row(False), row(True)).status
    assert status == "refuted" if not same else status != "refuted"

"""A claim is made once: what is decided, told, saved, pickled and checked again is one and the same.

Each way in which a certificate could say something other than what was decided is tried here.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived
from symad.core.graph import Graph
from symad.display.stated import stated
from symad.verification.decide import one_by_one, pairs_of

x, y = sp.symbols("x y", real=True)
zero = sp.Symbol("z", zero=True)
y_bar, x_dot, y_dot = sp.symbols("y_bar x_dot y_dot", real=True)
THIRD = 0.3333333333333333
HALF_LINE = sp.log(x**3) / (3 * sp.log(x))
"""1 for x > 0, and without a value for x < 0."""

CLAIMS = {
    "a gradient": (x**3 / 3, {"gradient": x**2}, "proved", "the gradient by x of x**3/3"),
    "a slip": (x**3 / 3, {"gradient": x**2 + y}, "refuted", "the gradient by x of x**3/3"),
    "constants": (THIRD * x**3, {"gradient": x**2, "constants": "rounded"}, "proved",
                  "the gradient by x of x**3/3"),
    "a Hessian": (x**3, {"hessian": sp.Matrix([[6 * x]])}, "proved", "the Hessian by x of x**3"),
    "a vjp": (x**2, {"vjp": 2 * x * y_bar}, "proved", "the vector-Jacobian product by x of x**2"),
    "a jvp": (x**2, {"jvp": 2 * x * x_dot}, "proved", "the Jacobian-vector product by x of x**2"),
    "a value": (sp.sin(x) ** 2, {"value": 1 - sp.cos(x) ** 2}, "proved", "equal values"),
    "a clip": (sp.Max(x, 0) ** 2, {"gradient": 2 * x, "where": x > 0}, "tested",
               "the gradient by x of Max(0, x)**2, where"),
    "no clip": (sp.Max(x, 0) ** 2, {"gradient": 2 * x, "where": x > -1}, "refuted",
                "the gradient by x of Max(0, x)**2, where"),
    "a domain": (sp.log(x), {"gradient": 1 / sp.Abs(x)}, "tested", "the gradient by x of log(x)"),
    "a zero": (sp.Abs(x) + zero * x, {"gradient": 1 + zero, "where": x > zero}, "tested",
               "the gradient by x of x*z + Abs(x), where"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_what_is_saved_pickled_and_checked_again_is_what_was_decided(name):
    f, asked, status, told = CLAIMS[name]
    made = symad.verify(f, x, inputs=[x, y, zero], seed=1, **asked)
    assert made.status == status and [text.startswith(told) for text in stated(made)] == [True]
    for carried in (symad.Certificate.from_json(made.to_json()), pickle.loads(pickle.dumps(made))):
        assert stated(carried) == stated(made)
        (one,), (other,) = carried.comparisons, made.comparisons
        assert one.groups == other.groups and one.derivative == other.derivative
        again = carried.recheck(seed=2)
        assert again.status == status and stated(again) == stated(made)


@pytest.mark.parametrize(("f", "constants"), [(x**3 / 3, "exact"), (THIRD * x**3, "rounded")])
@pytest.mark.parametrize("missing", [HALF_LINE, sp.sqrt(x) / sp.sqrt(sp.Abs(x))])
def test_a_formula_without_values_where_the_function_has_a_slope_is_not_established(f, constants, missing):
    made = symad.verify(f, gradient=x**2 * missing, constants=constants)
    assert made.status == "undecided" and "the formula has none" in made.entries[0].reason
    inside = symad.verify(x**3 / 3, gradient=x**2 * missing, where=x > 0)
    assert inside.status in ("proved", "tested")
    assert symad.equal(x**2 * missing, x**2).status in ("proved", "tested")  # where both sides are


def test_a_formula_may_lack_a_value_at_single_points():
    """0/0 at 0 alone is no open set."""
    for f, g in ((x**3, lambda v: 3 * v**2 * np.sin(v) / np.sin(v)), (sp.Abs(x) ** 3, 3 * x**3 / sp.Abs(x))):
        assert symad.verify(f, gradient=symad.trace(g, [x]) if callable(g) else g)


def test_rounded_constants_belong_to_the_function_too():
    """The certificate names the function that it is about, and its derivative is checked."""
    made = symad.verify(THIRD * x**3 * sp.log(x), gradient=x**2 * sp.log(x) + x**2 / 3, constants="rounded")
    (claim,) = made.comparisons
    assert made.status == "proved" and claim.derivative is not None
    assert "constants were read as rounded: 0.3333333333333333 as 1/3" in made.notes
    assert not any("symad's derivative rules" in text for text in made.assumes)  # the checker derived it


def test_inputs_that_are_zero_are_zero_in_the_domain():
    made = symad.verify(sp.Abs(x) + zero * x, x, gradient=1 + zero, where=x > zero)
    (pair,) = pairs_of(0, made.comparisons[0])
    assert zero not in Graph((), (pair.left, pair.right, pair.domain, *pair.function)).inputs
    assert {str(n.op.symbol) for n in Graph((), (pair.domain,)).nodes if hasattr(n.op, "symbol")} == {"x"}


@pytest.mark.parametrize("kind", ["value", "gradient", "pullback", "pushforward"])  # others have one output
def test_claims_of_several_outputs_are_whole_when_they_are_cut(kind, monkeypatch):
    """Each part of a claim that is cut is the claim about one output, of one part of the derivative."""
    f = symad.trace([x * y, x + y] if kind in ("value", "pushforward") else x * y**2, inputs=[x, y])
    asked = {"gradient": {"gradient": [y**2, 2 * x * y]}, "value": {"value": [x * y, x + y]},
             "pullback": {"vjp": [y**2 * y_bar, 2 * x * y * y_bar]},
             "pushforward": {"jvp": [x * y_dot + y * x_dot, x_dot + y_dot]}}  # fmt: skip
    (whole,) = symad.verify(f, **asked[kind]).comparisons
    monkeypatch.setattr("symad.verification.decide.MAX_ELEMENTS", 0)
    parts = one_by_one(whole)
    assert len(parts) == 2 and [p.names for p in parts] == [(n,) for n in whole.names]
    for k, part in enumerate(parts):
        assert Derived(part.derivative, part.right.output_nodes).is_whole
        of = Derivative(whole.derivative.kind, whole.derivative.function)
        assert part.derivative.about(0) == of.about(k)
        assert part.right.output_nodes == whole.right.output_nodes[k : k + 1]


def test_claims_of_one_certificate_have_domains_of_their_own():
    """A file may hold claims on several domains: what holds inside of one says nothing of another."""
    inside = symad.verify(sp.Abs(x), x, gradient=1, where=x > 0, seed=1)
    everywhere = [symad.verify(x**2, x, gradient=2 * x + sp.Max(-x, 0), seed=1),
                  symad.verify(x**3 / 3, x, gradient=x**2 * HALF_LINE, seed=1)]  # fmt: skip
    for other in everywhere:
        for parts in ((inside, other), (other, inside)):
            claims = [replace(p.comparisons[0], names=(n,)) for n, p in zip("pq", parts, strict=True)]
            entries = [replace(p.entries[0], name=n) for n, p in zip("pq", parts, strict=True)]
            both = replace(inside, comparisons=tuple(claims), entries=tuple(entries), proofs=())
            again = symad.Certificate.from_json(both.to_json()).recheck(seed=2)
            assert [e.status for e in again.entries] == [p.status for p in parts]

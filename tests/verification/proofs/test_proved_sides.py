"""One of several forms of a derivative is proved; the other forms are then compared with the proved one."""

import numpy as np
import pytest
from sympy import Abs, And, Piecewise, Symbol, exp, log, sqrt

import symad
from symad.core.claims import Derivative
from symad.core.graph import Graph
from symad.models.layers.parameters import trace_model
from symad.models.transformers.transformer import Transformer
from symad.verification.accept import Pair, proof
from symad.verification.certificate.certificate import Comparison
from symad.verification.tactics import beside_proved
from symad.verification.values.ranges import always_exist

x, y = Symbol("x", real=True), Symbol("y", real=True)
p = Symbol("p", positive=True)

EVERYWHERE = [1 / (exp(x) + exp(y)), sqrt(1 + x**2), log(2 + x**2) / (3 + Abs(y)), 1 / p, log(p)]
SOMEWHERE = [
    1 / (exp(x) - 1), 1 / x, sqrt(x + Abs(x) - 1), log(x**2), 1 / (x + Abs(x)), sqrt(x),
    Piecewise((1, log(x) > 0), (2, True)), Piecewise((1, And(x > 1, log(y) > 0)), (y, True)),
]  # fmt: skip


@pytest.mark.parametrize("f", EVERYWHERE)
def test_values_that_always_exist(f):
    assert always_exist(symad.trace(f).output_nodes)


@pytest.mark.parametrize("f", SOMEWHERE)
def test_values_that_may_not_exist(f):
    assert not always_exist(symad.trace(f).output_nodes)


def test_rows_that_are_chosen_by_numbers_exist():
    rows = symad.trace(lambda a: np.exp(a)[[2, 0]] / np.exp(a).sum(), [(3,)])
    assert always_exist(rows.output_nodes)


def pairs(function, *forms):
    """Pairs of a derivative by x in several forms, each beside a reference."""
    (value,) = symad.trace(function, inputs=[x, y]).output_nodes
    made = [symad.trace(form, inputs=[x, y]) for form in forms]
    inputs = made[0].input_nodes
    of = Derivative("gradient", (value,), inputs[:1])
    (reference,) = symad.trace(function.diff(x) + 0, inputs=[x, y]).output_nodes
    sides = [Comparison("", Graph(inputs, (reference,)), ("∂f",), derivative=of, right=g) for g in made]
    return [Pair(c, "∂f", reference, c.right.output_nodes[0], (k, 0)) for k, c in enumerate(sides)]


def test_a_form_is_compared_with_a_proved_one_that_always_exists():
    first, second = pairs(y * exp(x), y * exp(x), exp(x + log(1 + y**2)) * y / (1 + y**2))
    asked = beside_proved({0: first, 1: second}, {0: proof(first, "")})
    assert asked[0] is first and asked[1].left is first.right and asked[1].right is second.right


def test_a_form_is_not_compared_with_one_that_may_not_exist():
    """√x √x says nothing of negative numbers: |x| would be compared with x for positive ones alone."""
    first, second = pairs(x**2 / 2, sqrt(x) * sqrt(x), Abs(x))
    assert beside_proved({0: first, 1: second}, {0: proof(first, "")}) == {0: first, 1: second}


@pytest.mark.slow
def test_all_derivatives_of_a_transformer_of_two_layers_are_decided():
    """Its gradients and one Hessian are proved, and the other Hessians are tested against that one."""
    model = Transformer(7, 4, 4, 2, 2, tied=False)
    tokens = np.arange(4)
    loss = trace_model(lambda p: model.loss(p, tokens, np.roll(tokens, -1)), model.shapes)
    certificate = symad.check(loss, seed=1)
    told = {e.name.split(":")[0]: e for e in certificate.entries}
    proved = {name for name, e in told.items() if e.status == "proved"}
    assert proved >= {"gradient (reverse)", "gradient (forward)", "Hessian (forward-over-forward)"}
    assert all(e.status == "tested" and "another form" in e.claim for n, e in told.items() if n not in proved)
    assert certificate.steps < 4_000_000

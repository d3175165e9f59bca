"""What stands at the head of a Coq file: domains without a point, and names that differ."""

from itertools import pairwise

import pytest
import sympy as sp

import symad
from symad.verification.coq.programs import HOLDS, NAMED, NONZERO, POSITIVE, STATED, VALUES
from symad.verification.coq.terms import FUNCTIONS
from symad.verification.coq.write import CertifiedModel, as_coq

x, y = sp.symbols("x y", real=True)
a = sp.symbols("a:5", real=True)

EMPTY = {
    "branches whose conditions exclude each other": sp.Piecewise(
        (sp.log(x), x > 1), (sp.sqrt(-x), x < -1), (0, True)
    ),
    "a function without values": y * sp.sqrt(-1 - x**2),
    "two logarithms": sp.log(x) + sp.log(-x) + y,
}

INHABITED = {
    "a logarithm": sp.log(x) * sp.sqrt(y),
    "a Piecewise": sp.Piecewise((sp.log(x), x > 1), (sp.sin(x), True)),
    "an order": sum(sp.log(p - q) for p, q in pairwise(a)),
    "many positive inputs": sum(sp.log(s) for s in sp.symbols("p:30", real=True)),
    "inside of a circle": sp.log(1 - x**2 - y**2) + sp.asin(x) + sp.acosh(3 + y),
    "named values": sp.log(sp.exp(x) - sp.exp(y)) * sp.tan(x) / (sp.exp(x) - sp.exp(y)) ** 2,
    "a product of all": 1 / sp.prod(a),
}


def text_of(f):
    graph = symad.trace(f)
    return as_coq(CertifiedModel(f, graph, tuple(graph.inputs)))


@pytest.mark.parametrize("name", EMPTY)
def test_a_domain_without_a_point_is_told(name):
    assert "no point was found at which all of its conditions hold" in text_of(EMPTY[name]).split("*)")[0]


@pytest.mark.parametrize("name", INHABITED)
def test_a_domain_with_points_is_not(name):
    assert "no point was found" not in text_of(INHABITED[name])


def test_every_function_and_condition_has_a_value():
    constructors = {*FUNCTIONS}
    assert constructors <= {*VALUES, *NAMED}
    assert {"Inv", "Log", *STATED} == {*HOLDS}
    assert constructors >= NONZERO | POSITIVE | STATED


def test_inputs_with_another_name_are_listed():
    symbols = [
        sp.Symbol(name, real=True) for name in ("x'", "x_", "forall", "a*) Axiom no : False. (*", 'b"')
    ]
    text = text_of(sp.Add(*[s**k for k, s in enumerate(symbols, 2)]))
    head = text.split("*)")[0]
    assert "x is x'." in head and "x_2 is x_." in head and "forall_2 is forall." in head
    assert '"' not in head and "Axiom" in head  # inside of the comment
    assert "Axiom no" not in text[len(head) :]
    assert "x is x" not in text_of(x * y)

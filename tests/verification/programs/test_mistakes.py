"""Refutations name the mistake, at the top of a formula or inside a program that repeats it."""

import importlib.util
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from sympy import Matrix, MatrixSymbol, Symbol, cos, exp, floor, lambdify, sin, symbols

import symad
from symad.ops.basic.sources import input_node
from symad.verification.certificate.blame import name_of

x, y = symbols("x y", real=True)
A, b = MatrixSymbol("A", 3, 3), MatrixSymbol("b", 3, 1)

TOP = {
    "wrong sign": symad.verify(cos(x), x, gradient=sin(x)),
    "missing factor y": symad.verify(sin(x * y), x, gradient=cos(x * y)),
    "missing factor 2": symad.verify(x**2, x, gradient=x),
    "transposed": symad.verify(b.T * A * A * b, A, gradient=(b * b.T * A.T + A.T * b * b.T).T),
    "it should be zero": symad.verify(exp(y + 0 * x) + floor(x), x, gradient=exp(y)),
    "it should be zero: f does not depend on x, but on y": symad.verify(exp(y), x, gradient=exp(y)),
}


@pytest.mark.parametrize("name", TOP)
def test_a_mistake_at_the_top_is_named(name):
    certificate = TOP[name]
    assert certificate.status == "refuted"
    assert name in {entry.blame.mistake for entry in certificate.entries if entry.blame}, str(certificate)


def example(number):
    (path,) = (Path(__file__).parents[3] / "examples").rglob(f"{number}_*.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BY_HAND = example(30)
LSTM = symad.trace(BY_HAND.loss, [(4, 2, 2), (4, 2, 2), (4, 2), (2, 2)])
ATTENTION = symad.trace(BY_HAND.attend, [(3, 2), (3, 2), (3, 2)])


def verified(graph, function, wrt, mistake):
    derived = symad.trace(partial(function, mistake=mistake), graph.inputs)
    return symad.verify(graph, wrt, gradient=derived, seed=1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mistake", "named"), [("sign", "wrong sign of tanh"), ("transpose", "transposed: W_h")]
)
def test_a_mistake_in_every_step_of_a_loop_is_named(mistake, named):
    certificate = verified(LSTM, BY_HAND.backward, ["W_x", "W_h", "b"], mistake)
    assert certificate.status == "refuted"
    assert any(e.blame and named in e.blame.mistake for e in certificate.entries), str(certificate)


@pytest.mark.thorough
def test_a_missing_transpose_in_attention_is_named():
    certificate = verified(ATTENTION, BY_HAND.attend_backward, ["Q", "K", "V"], "transpose")
    right = {e.name for e in certificate.entries if e.status != "refuted"}
    assert right == {"∂f/∂Q", "∂f/∂V"}
    assert any(e.blame and e.blame.mistake.startswith("transposed") for e in certificate.entries)


@pytest.mark.thorough
def test_a_forgotten_path_through_a_softmax_is_named():
    certificate = verified(ATTENTION, BY_HAND.attend_backward, ["Q", "K", "V"], "path")
    right = {e.name for e in certificate.entries if e.status != "refuted"}
    assert right == {"∂f/∂V"}
    named = {e.blame.mistake for e in certificate.entries if e.blame}
    assert len(named) == 1 and "forgotten path: through the sum in exp(" in named.pop()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("graph", "function", "wrt"),
    [
        (LSTM, BY_HAND.backward, ["W_x", "W_h", "b"]),
        (ATTENTION, BY_HAND.attend_backward, ["Q", "K", "V"]),
    ],
    ids=["LSTM", "attention"],
)
def test_what_is_derived_without_a_mistake_is_certified(graph, function, wrt):
    certificate = verified(graph, function, wrt, "")
    assert certificate.status in ("proved", "tested")
    assert certificate.bound < 2.0**-64


def test_a_sum_along_the_wrong_axis_is_named():
    f = symad.trace(lambda X: np.sum(np.tanh(np.sum(X, axis=0))), [(3, 3)])
    wrong = symad.trace(lambda X: (1 - np.tanh(np.sum(X, axis=1)) ** 2) + np.zeros((3, 3)), f.inputs)
    certificate = symad.verify(f, f.inputs[0], gradient=wrong)
    assert certificate.status == "refuted"
    assert any(e.blame and "wrong axis" in e.blame.mistake for e in certificate.entries), str(certificate)


@pytest.mark.parametrize("power", [-(10**50), -(10**12), 10**50])
def test_an_enormous_ratio_is_no_forgotten_factor(power):
    """As a fraction, 2^(10^50) would have more digits than there are atoms."""
    a, b = (input_node(symbols(name, real=True), ()) for name in "ab")
    values = {a: np.array(mpmath.ldexp(1, power), dtype=object), b: np.array(mpmath.mpf(1), dtype=object)}
    assert name_of(a, b, [values]) == ""


def names_of(certificate):
    assert certificate.status == "refuted"
    return {entry.blame.mistake for entry in certificate.entries if entry.blame}


LACKING = {
    "gradient": (x**2, y, {"gradient": 2 * x}),
    "program": (x**2, y, {"gradient": lambda x, y: 2 * x}),
    "vjp": (x**2, y, {"vjp": 2 * x * symbols("y_bar", real=True)}),
    "column": ([x**2, 3 * x], [x, y], {"jacobian": [[2 * x, 2 * x], [3, 0]]}),
    "hessian": (x**2, [x, y], {"hessian": [[2, 0], [0, 2]]}),
}


@pytest.mark.parametrize("name", LACKING)
def test_an_input_that_the_function_does_not_contain_is_named(name):
    f, wrt, candidate = LACKING[name]
    found = names_of(symad.verify(f, wrt, **candidate))
    assert found == {"it should be zero: f does not depend on y, but on x"}


V = symbols("x1:6", real=True)
MAP = Matrix(
    [V[0] * V[1] ** 2, sin(V[0]) * V[2], V[0] * V[3] * V[4], exp(V[1]) * V[4], V[2] ** 2 + V[3] ** 2]
)
ENTRIES = {
    "entry (2, 3) differs, the other 24 agree": [(2, 3, V[3] + V[4])],
    "wrong sign in entry (2, 3); the other 24 agree": [(2, 3, -V[0] * V[4])],
    "entries (0, 1) and (2, 3) differ, the other 23 agree": [(0, 1, V[0] * V[1]), (2, 3, -V[0] * V[4])],
    "it should be zero in entry (4, 4); the other 24 agree": [(4, 4, V[0])],
}


@pytest.mark.parametrize("as_program", [False, True])
@pytest.mark.parametrize("name", ENTRIES)
def test_entries_of_a_jacobian_that_are_wrong_are_named(name, as_program):
    wrong = MAP.jacobian(V)
    for row, column, entry in ENTRIES[name]:
        wrong[row, column] = entry
    candidate = lambdify(V, wrong) if as_program else wrong
    found = names_of(symad.verify(MAP, V, jacobian=candidate))
    assert len(found) == 1 and name in found.pop()


PRODUCT = symad.trace(lambda A, B: ((A @ B @ B) ** 2).sum(), [(2, 2), (2, 2)])
BLOCKS = {
    "transposed in block (A, B); the other 3 agree": lambda H: H[:4, 4:].T,
    "missing factor 1/2 in block (A, B); the other 3 agree": lambda H: 2 * H[:4, 4:],
    "it should not be zero in block (A, B); the other 3 agree": lambda H: 0 * H[:4, 4:],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_a_hessian_that_are_wrong_are_named(name):
    right = symad.hessian(PRODUCT)

    def hessian(A, B):
        found = np.array(right(A, B))
        found[:4, 4:] = BLOCKS[name](found)
        return found

    assert names_of(symad.verify(PRODUCT, hessian=hessian)) == {name}


def test_changes_without_a_name_in_many_entries_get_none():
    right = symad.hessian(PRODUCT)
    certificate = symad.verify(PRODUCT, hessian=lambda A, B: right(A, B) + np.outer(A.ravel(), [1] * 8)[:1])
    assert names_of(certificate) <= {""}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["x_{1}", "{x}", "{}", "{0}", "%s", "\\dot{q}"])
def test_names_may_have_braces(name):
    """A wrong program for a function of {x} ended in a KeyError of str.format."""
    s, t = Symbol(name, real=True), Symbol("zz", real=True)
    ask = partial(symad.verify, sin(s) * t**2, [s, t], inputs=[s, t])
    assert ask(gradient=lambda a, b: (np.cos(a) * b**2, 2 * np.sin(a) * b)).status == "measured"
    for wrong in (
        lambda a, b: (2 * np.cos(a) * b**2, 2 * np.sin(a) * b),
        lambda a, b: (-np.cos(a) * b**2, np.sin(a) * b),
        lambda a, b: (np.sin(a) * b**2, 2 * np.sin(a)),
    ):
        certificate = ask(gradient=wrong)
        assert certificate.status == "refuted"
        assert name in str(certificate)

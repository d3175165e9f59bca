"""Numeric functions of several libraries are measured; wrong ones are reported with the kind of mistake."""

import importlib.util
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sympy import MatrixSymbol, Symbol, atan, cos, exp, log, sin, sqrt, symbols, tanh

import symad
from symad import functions
from symad.numeric import lower
from symad.verification import Budget
from tests.gpu.cupy_standin import installed

x, y = symbols("x y", real=True)
f = tanh(x) * y


def right(x, y):
    return 1 - np.tanh(x) ** 2, np.tanh(x)


def verified(function, budget=None):
    """Of ∂f/∂x = y (1 − tanh² x) and ∂f/∂y = tanh x."""
    return symad.verify(f, [x, y], gradient=function, budget=budget)


def of(x, y):
    t = np.tanh(x)
    return y * (1 - t) * (1 + t), t


def test_an_accurate_function_is_measured_and_its_figures_are_told():
    certificate = symad.verify(sin(x) * y, [x, y], gradient=lambda x, y: (y * np.cos(x), np.sin(x)))
    entry = certificate.entries[0]
    assert certificate.status == "measured"
    assert not certificate  # nothing is known beyond the points
    assert certificate.bound == 1.0
    assert entry.measured["ulps"] < 8
    assert entry.measured["points"] >= 20
    assert 1e-7 < entry.measured["would have seen"] <= 1e-6
    assert "would have been seen" in repr(certificate)
    assert symad.Certificate.from_json(certificate.to_json()) == certificate


def test_a_wrong_function_is_refuted_with_a_witness():
    certificate = verified(right)  # a factor y is missing
    assert certificate.status == "refuted"
    wrong = next(e for e in certificate.entries if e.status == "refuted")
    assert wrong.name.startswith("∂f/∂x")
    assert float(wrong.witness.left) == pytest.approx(
        float(wrong.witness.point["y"]) * float(wrong.witness.right), rel=1e-12
    )


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x, "called with \\(x, y\\)"),
        (lambda x, y: of(x, y)[0], "returned a [a-z0-9]+, which is one output, in place of 2"),
        (lambda x, y: (*of(x, y), 0.0), "returned 3 outputs in place of 2"),
        (lambda x, y: (np.ones(3), 0.0), r"returned shape \(3,\) instead of \(\)"),
        (lambda x, y: (of(x, y)[0] + 0j, of(x, y)[1]), "returned complex numbers"),
        (lambda x, y: ("one", of(x, y)[1]), "returned a str, not real numbers"),
        (lambda x, y: (None, of(x, y)[1]), "returned None, not real numbers"),
    ],
)
def test_a_mistake_in_use_is_an_error_and_no_verdict(function, words):
    with pytest.raises(TypeError, match=words):
        verified(function)


def test_a_jacobian_in_parts_is_a_mistake_in_use():
    rows = lambda x, y: ([2 * x * y, x * x], [y, x])  # noqa: E731
    with pytest.raises(
        TypeError, match=r"one array of shape \(2, 2\); the function returned a tuple of 2 parts"
    ):
        symad.verify([x**2 * y, x * y], [x, y], jacobian=rows)
    certificate = symad.verify([x**2 * y, x * y], [x, y], jacobian=lambda x, y: np.array(rows(x, y)))
    assert certificate.status == "measured"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, y: 1 / 0, "raised ZeroDivisionError"),
        (lambda x, y: (np.nan, of(x, y)[1]), "no value (NaN)"),
        (lambda x, y: of(x, y) if x > 0 else 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_what_raises_or_has_no_value_is_called_so_and_not_wrong(function, words):
    certificate = verified(function)
    assert certificate.status == "undecided"
    assert words in str(certificate)


def test_an_infinity_is_wrong_where_the_value_is_finite():
    assert verified(lambda x, y: (np.inf, of(x, y)[1])).status == "refuted"


def test_digits_lost_at_hostile_points_are_a_section_of_their_own():
    """1 − cos x loses all digits near 0; 2 sin²(x/2) none."""
    lossy = symad.verify(1 - cos(x), x, value=lambda x: 1 - np.cos(x))
    assert lossy.status == "measured"
    assert max(loss.digits for loss in lossy.losses) >= 15
    text = " ".join(str(lossy).split())
    assert "digits lost at x = 1e-09" in text
    assert "hostile=False" in text
    assert symad.verify(1 - cos(x), x, value=lambda x: 1 - np.cos(x), hostile=False).losses == ()
    stable = symad.verify(1 - cos(x), x, value=lambda x: 2 * np.sin(x / 2) ** 2)
    assert stable.status == "measured"
    assert stable.losses == ()


def test_an_overflow_of_the_program_hides_no_right_formula():
    certificate = symad.verify(
        x**2, x, gradient=lambda x: 2 * math.exp(math.log(abs(x))) * np.sign(x) if x else 0.0
    )
    assert certificate.status == "measured"
    overflowing = symad.verify(log(1 + exp(x)), x, value=lambda x: math.log(1 + math.exp(x)))
    assert overflowing.status == "measured"
    assert any("OverflowError" in loss.word for loss in overflowing.losses)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("formula", "naive", "stable"),
    [
        (log(1 + exp(x)), lambda x: np.log(1 + np.exp(x)), lambda x: np.logaddexp(0, x)),
        (log(1 + x), lambda x: np.log(1 + x), np.log1p),
        (exp(x) - 1, lambda x: np.exp(x) - 1, np.expm1),
        (sqrt(x**2 + y**2), lambda x, y: np.sqrt(x * x + y * y), np.hypot),
    ],
)
def test_the_stable_form_is_told_from_the_naive_one(formula, naive, stable):
    assert symad.verify(formula, value=naive).losses
    assert symad.verify(formula, value=stable).losses == ()
    assert (
        symad.verify(formula, value=naive).status == symad.verify(formula, value=stable).status == "measured"
    )


def test_naive_derivatives_are_no_wrong_formulas_where_their_errors_look_steady():
    """Beside a small x the error of a cancellation is the same at all floats close by."""
    claims = (
        ((exp(x) - 1) / x, lambda x: (x * np.exp(x) - np.exp(x) + 1) / x**2),
        (sin(x) / x, lambda x: np.cos(x) / x - np.sin(x) / x**2),
    )
    for formula, slope in claims:
        for seed in range(2):
            assert symad.verify(formula, x, gradient=slope, hostile=False, seed=seed).status == "measured"


def test_an_error_of_a_few_roundings_is_accepted_and_one_of_many_is_told():
    def off_by(factor):
        return lambda x: np.arctan(x) * (1 + factor * np.finfo(float).eps)

    assert symad.verify(atan(x), value=off_by(20)).losses == ()
    many = symad.verify(atan(x), value=off_by(20_000))
    assert many.status == "measured"
    assert {loss.word for loss in many.losses} == {"digits lost"}
    assert symad.verify(atan(x), value=off_by(1e-6 / np.finfo(float).eps)).status == "refuted"


def test_single_precision_is_measured_as_such():
    certificate = symad.verify(sin(x), x, value=lambda x: np.sin(np.float32(x)))
    assert certificate.status == "measured"
    assert certificate.losses == ()
    assert 1e-5 < certificate.entries[0].measured["would have seen"] < 1e-2
    as_double = symad.verify(sin(x), x, value=lambda x: float(np.sin(np.float32(x))))
    assert as_double.status == "refuted"  # of 3000 rounded to single precision the sine is another
    wrong = symad.verify(sin(x), x, value=lambda x: np.float32(1.01) * np.sin(np.float32(x)))
    assert wrong.status == "refuted"


# ---- libraries ----------------------------------------------------------------------------------

S = MatrixSymbol("S", 3, 2)


def loss(S):
    return np.sum(functions.softmax(S, axis=-1) ** 2)


LOSS = symad.trace(loss, [(3, 2)])


@pytest.mark.thorough
def test_a_function_of_torch():
    torch = pytest.importorskip("torch")

    def gradient(S):
        S = S.requires_grad_()
        (torch.softmax(S, -1) ** 2).sum().backward()
        return S.grad

    def halved(S):
        return gradient(S) / 2

    assert symad.verify(LOSS, LOSS.inputs[0], gradient=gradient, hostile=False).status == "measured"
    assert symad.verify(LOSS, LOSS.inputs[0], gradient=halved).status == "refuted"


@pytest.mark.thorough
def test_a_function_of_jax():
    jax = pytest.importorskip("jax")
    gradient = jax.grad(lambda S: (jax.nn.softmax(S, axis=-1) ** 2).sum())
    assert symad.verify(LOSS, LOSS.inputs[0], gradient=gradient, hostile=False).status == "measured"
    twice = jax.grad(lambda S: 2 * (jax.nn.softmax(S, axis=-1) ** 2).sum())
    assert symad.verify(LOSS, LOSS.inputs[0], gradient=twice).status == "refuted"


@pytest.mark.thorough
def test_a_function_of_cupy(monkeypatch):
    with installed() as cupy:

        def gradient(S):
            if not isinstance(S, cupy.ndarray):
                raise TypeError("give me an array of CuPy")
            e = cupy.exp(S - S.max(axis=-1, keepdims=True))
            p = e / e.sum(axis=-1, keepdims=True)
            return 2 * p * (p - (p * p).sum(axis=-1, keepdims=True))

        assert symad.verify(LOSS, LOSS.inputs[0], gradient=gradient, hostile=False).status == "measured"
        assert symad.verify(LOSS, LOSS.inputs[0], gradient=lambda S: -gradient(S)).status == "refuted"


@pytest.mark.thorough
def test_generated_code_and_generated_files(tmp_path):
    kernel = lower(symad.gradient(LOSS, LOSS.inputs[0]))
    assert symad.verify(LOSS, LOSS.inputs[0], gradient=kernel, hostile=False).status == "measured"
    path = tmp_path / "generated_gradient.py"
    kernel.save(path)
    spec = importlib.util.spec_from_file_location("generated_gradient", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert symad.verify(LOSS, LOSS.inputs[0], gradient=module, hostile=False).status == "measured"
    for text in (path, str(path)):
        with pytest.raises(TypeError, match="is text, which is never run"):
            symad.verify(LOSS, LOSS.inputs[0], gradient=text)


def test_a_function_may_change_its_arguments():
    def spoiled(S):
        p = np.exp(S - S.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        S[:] = np.nan
        return 2 * p * (p - (p * p).sum(axis=-1, keepdims=True))

    assert symad.verify(LOSS, LOSS.inputs[0], gradient=spoiled, hostile=False).status == "measured"


@pytest.mark.thorough
def test_a_function_that_hangs_is_stopped():
    def slow(x, y):
        while True:
            sum(range(1000))

    start = time.monotonic()
    certificate = verified(slow, Budget(seconds=1))
    assert time.monotonic() - start < 60  # of one second: a hang is what it looks for
    assert certificate.status == "undecided"
    assert "the time allowed (1 s) was used up" in str(certificate)


def test_exactly_one_candidate():
    with pytest.raises(TypeError, match="exactly one"):
        symad.verify(f, x)
    with pytest.raises(TypeError, match="exactly one"):
        symad.verify(f, x, gradient=y, value=y)


def test_nothing_of_the_users_libraries_is_imported():
    assert Path(symad.__file__).name == "__init__.py"
    module = sys.modules["symad.verification.measuring.call_users_code"]
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert not any(f"import {name}" in text for name in ("torch", "jax", "cupy"))
    assert Symbol("x", real=True) == x


@pytest.mark.thorough
def test_arguments_of_another_order_are_a_mistake_in_use():
    """(x, k) for (k, x) was refuted: the values were swapped."""
    k = symbols("k", integer=True)
    words = r"takes \(x, k\), but is called with \(k, x\), the inputs in their order"
    with pytest.raises(TypeError, match=words):
        symad.verify(x**k, x, gradient=lambda x, k: k * x ** (k - 1))
    right = lambda x, k: k * x ** (k - 1)  # noqa: E731
    assert symad.verify(x**k, x, gradient=right, inputs=[x, k]).status == "measured"
    assert symad.verify(x**k, x, gradient=lambda k, v: k * v ** (k - 1)).status == "measured"
    layer = symad.trace(lambda X, w: X @ w, [(3, 2), (2,)])
    with pytest.raises(TypeError, match=r"takes \(w, X, g\), but is called with \(X, w, y_bar\)"):
        symad.verify(layer, ["X", "w"], vjp=lambda w, X, g: (np.outer(g, w), X.T @ g))


def test_series_of_pandas_are_arrays():
    pandas = pytest.importorskip("pandas")
    f = symad.trace(lambda a: (a**2).sum(), [(3,)])
    assert symad.verify(f, "a", gradient=lambda a: pandas.Series(2 * a)).status == "measured"


@pytest.mark.thorough
def test_places_have_the_inputs_in_their_order():
    rows = np.arange(3)
    f = symad.trace(lambda z, t: np.maximum(z, 0)[rows, t].sum(), [(3, 4), np.array([1, 0, 2])])
    calls = []

    def raises_later(z, t):
        calls.append(1)
        made = np.zeros(z.shape)
        made[rows, t] = z[rows, t] > 0
        return made if len(calls) < 4 else 1 / 0

    certificate = symad.verify(f, "z", gradient=raises_later)
    assert {loss.kind for loss in certificate.losses} >= {"ordinary", "turning"}
    assert {tuple(loss.point) for loss in certificate.losses} == {("z", "t")}


@pytest.mark.thorough
def test_a_jacobian_in_parts_is_taken_apart():
    """A tuple per input, as JAX and PyTorch return, with the axes of the output before those of the input."""
    product = symad.trace(lambda u, W: W @ u, [(3,), (2, 3)])

    def parts(u, W, wrong=0.0):
        by_W = np.zeros((2, 2, 3))
        by_W[[0, 1], [0, 1]] = u
        return W + wrong, by_W

    assert symad.verify(product, jacobian=parts).status == "measured"
    assert symad.verify(product, jacobian=lambda u, W: parts(u, W, 1e-3)).status == "refuted"
    assert symad.verify(product, ["W"], jacobian=lambda u, W: parts(u, W)[1:]).status == "measured"
    both = symad.trace(lambda a, b: (a * b, a + b), [(), ()])
    assert symad.verify(both, jacobian=lambda a, b: ((b, a), (1.0, 1.0))).status == "measured"
    stacked = symad.trace(lambda a, b: np.stack([a * b, a + b]), [(), ()])
    rows = lambda a, b: (np.array([b, a]), np.array([1.0, 1.0]))  # noqa: E731
    assert symad.verify(stacked, jacobian=rows).status == "refuted"  # parts are columns
    assert symad.verify(stacked, jacobian=lambda a, b: [[b, a], [1.0, 1.0]]).status == "measured"


def test_conditions_in_a_list_are_refused():
    with pytest.raises(TypeError, match=r"not \[x > 0, x < 1\]; join several conditions by sympy.And"):
        symad.verify(x**2, x, gradient=2 * x, where=[x > 0, x < 1])
    with pytest.raises(TypeError, match="where= is no condition on real inputs: Invalid comparison"):
        symad.verify(x**2, x, gradient=2 * x, where=lambda _: sqrt(-1 - x**2) > 0)

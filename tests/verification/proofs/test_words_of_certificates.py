"""What a certificate prints: names and order of the user, places, and reasons that are sentences."""

import time

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import TraceError
from symad.verification import Budget
from symad.verification.budget import Meter, in_time

x, y, z = sp.symbols("x y z", real=True)


def test_a_point_has_the_inputs_in_their_order():
    hessian = symad.verify(
        x**2 * y + y**3 * z, [x, y, z],
        hessian=[[2 * y, 2 * x, 0], [2 * x, 6 * y * z, 3 * y], [0, 3 * y**2, 0]],
    )  # fmt: skip
    assert list(hessian.witness.point) == ["x", "y", "z"]
    given = symad.verify(symad.trace(x * y, inputs=[y, x]), "y", gradient=y)
    assert list(given.witness.point) == ["y", "x"]


def test_constants_differ_at_every_point():
    assert "at       every point" in str(symad.equal(sp.pi, sp.Rational(22, 7)))


def test_outputs_of_a_dict_have_its_keys():
    wrong = symad.verify({"loss": x + y, "rate": x * y}, value={"loss": x + y, "rate": x * y + 1})
    assert [(e.name, e.status) for e in wrong.entries] == [
        ("value['loss']", "proved"), ("value['rate']", "refuted"),
    ]  # fmt: skip
    nested = symad.equal({"a": [x, y], "b": x}, {"a": [x, y], "b": y})
    assert [e.name for e in nested.entries] == ["value['a'][0]", "value['a'][1]", "value['b']"]


def test_functions_of_elements_are_written_as_calls():
    f = symad.trace(lambda a: np.sum(np.sin(a) ** 2), [(2, 2)])
    half = symad.verify(f, "a", gradient=symad.trace(lambda a: np.sin(a) * np.cos(a), [(2, 2)]))
    assert "expected 2*sin(a) = " in str(half)
    assert "found    sin(a) = " in str(half)
    g = symad.trace(lambda a: np.sum(np.tanh(a)), [(2, 2)])
    inner = str(symad.verify(g, "a", gradient=symad.trace(lambda a: 1 - np.tanh(2 * a) ** 2, [(2, 2)])))
    assert "(1 - (HadamardPower(tanh(2*a), 2))) = " in inner
    assert "Lambda" not in inner


def test_a_factor_of_an_argument_is_not_called_one_of_the_derivative():
    """cos 2x for cos x was "wrong: extra factor 2"."""
    wrong = symad.verify(sp.sin(x), x, gradient=sp.cos(2 * x))
    assert wrong.entries[0].blame.mistake == "extra factor 2 in 2 x"
    assert symad.verify(sp.sin(x), x, gradient=2 * sp.cos(x)).entries[0].blame.mistake == "missing factor 1/2"


def test_a_reason_names_the_point_without_quotes():
    generator = np.random.default_rng(0)
    f = symad.trace(lambda a: np.sum(a**2), [(2,)])
    noisy = symad.verify(f, "a", gradient=lambda a: 2 * a * (1 + 1e-4 * generator.normal()))
    assert "two calls at the same point gave different values, at a = [" in " ".join(str(noisy).split())
    assert "'" not in noisy.entries[0].reason


def test_a_function_that_raises_is_the_subject_and_is_called():
    raising = symad.verify(x**2, x, gradient=lambda x: 1 / 0)
    (entry,) = raising.entries
    assert entry.reason.startswith("the function raised ZeroDivisionError: division by zero, at x = ")
    assert entry.claim != "called at 0 points"
    empty = symad.verify(x**2, x, gradient=lambda x: np.nan)
    assert empty.entries[0].reason.startswith("the function returns no value (NaN), at x = ")


def test_an_infinite_result_has_no_number_of_roundings():
    infinite = symad.verify(x**2, x, gradient=lambda x: np.inf)
    assert infinite.status == "refuted"
    assert "inf times" not in str(infinite)


@pytest.mark.parametrize("steps", [1, 1500])
def test_a_limit_of_work_is_told_once(steps):
    """It was "free: the work allowed (1 steps) was used up; related: ..."."""
    gradient = [y * sp.cos(x * y) * sp.exp(x) + sp.sin(x * y) * sp.exp(x), x * sp.cos(x * y) * sp.exp(x)]
    f = sp.sin(x * y) * sp.exp(x)
    for made in (
        symad.verify(f, [x, y], gradient=gradient, budget=Budget(steps=steps)),
        symad.check(f, budget=Budget(steps=steps)),
    ):
        limits = " ".join(str(made).split())
        assert "free" not in limits and "related" not in limits and "e+0" not in limits
    assert (
        symad.verify(f, [x, y], gradient=gradient, budget=Budget(steps=1))
        .entries[0]
        .reason.endswith("the work allowed (1 step) was used up")
    )


@pytest.mark.parametrize("limit", [{"steps": -1}, {"steps": None}, {"steps": "9"}, {"seconds": float("nan")}])
def test_a_limit_is_a_number(limit):
    with pytest.raises(ValueError, match=f"Budget: {next(iter(limit))} is a number from 0 on, not "):
        Budget(**limit)


def test_symbols_of_one_name_are_told_apart():
    """It was "depends on x (); the gradient depends on x (), y ()"."""
    own = sp.Symbol("x", positive=True)
    both = r"depends on x \(positive\); the gradient depends on x \(real\), y\."
    with pytest.raises(TraceError, match=both):
        symad.verify(sp.Abs(x) * y, [x, y], gradient=[y, own])
    with pytest.raises(TraceError, match=r"depends on z; the gradient depends on x, y\."):
        symad.verify(x * y, [x, y], gradient=[z, x])


def test_a_domain_of_other_arguments_is_named():
    words = r"where= takes \(x, y\), but is called with \(x\), the inputs in their order"
    with pytest.raises(TypeError, match=words):
        symad.verify(sp.Abs(x), x, gradient=sp.Integer(1), where=lambda x, y: x > 0)


def test_an_array_of_numpy_is_a_formula():
    """It was refused by `trace`: "array([1., 1., 1.]) of type ndarray cannot be traced"."""
    total = symad.trace(lambda a, b: a.sum() + 2 * b.sum(), [(3,), (2, 2)])
    assert symad.verify(total, "a", gradient=np.ones(3)).status == "proved"
    assert symad.verify(total, ["a", "b"], gradient=(np.ones(3), np.full((2, 2), 2))).status == "proved"
    assert symad.verify(total, ["a", "b"], gradient=(np.ones(3), np.full((2, 2), 3))).status == "refuted"
    assert symad.verify(x**2 * y, [x, y], gradient=np.array([2 * x * y, x**2])).status == "proved"
    hessian = np.array([[2 * y, 2 * x], [2 * x, 0]])
    assert symad.verify(x**2 * y, [x, y], hessian=hessian).status == "proved"


def test_a_mean_in_place_of_a_sum_is_called_so():
    n = sp.Symbol("n", integer=True, positive=True)
    total = symad.trace(lambda a: np.sum(a**2, axis=0), [(n, 2)])
    mean = symad.trace(lambda a: np.mean(a**2, axis=0), [(n, 2)])
    assert "a mean over axis 0 in place of a sum" in repr(symad.equal(total, mean, seed=1))
    assert "a sum over axis 0 in place of a mean" in repr(symad.equal(mean, total, seed=1))
    thrice = symad.trace(lambda a: 3 * np.sum(a**2, axis=0), [(3, 2)])
    once = symad.trace(lambda a: np.sum(a**2, axis=0), [(3, 2)])
    assert "missing factor 1/3" in repr(symad.equal(once, thrice, seed=1))


def test_claims_about_no_point_are_called_empty():
    for empty in (
        symad.equal(sp.sqrt(-1 - x**2), sp.log(-2 - x**2), seed=1),
        symad.equal(sp.sqrt(x - 1), sp.sqrt(1 - x), seed=1),
        symad.verify(x**2, x, gradient=2 * x, where=(x > 1) & (x < 0), seed=1),
    ):
        assert empty.status == "undecided"
        assert empty.entries[0].reason.startswith("an empty claim: ")


def test_what_a_function_raises_is_told_once():
    def raises(a, b):
        raise RuntimeError("no such luck")

    certificate = symad.verify(symad.trace(lambda a, b: np.sum(a * b), [(), ()]), gradient=raises, seed=1)
    assert certificate.status == "undecided"
    assert str(certificate).count("no such luck") == 1


def test_a_limit_of_time_holds_for_the_account_of_a_mistake():
    asked = []
    meter = Meter(Budget(seconds=1.0), start=time.monotonic() - 5.0)
    assert in_time(meter, lambda: asked.append("named"), "without") == "without"
    assert asked == []


@pytest.mark.thorough
def test_a_form_that_nothing_independent_was_compared_with_is_named():
    made = symad.check(symad.trace(lambda a: np.linalg.eigvalsh(a + a.T).sum(), [(3, 3)]))
    text = " ".join(str(made).split())
    assert "nothing independent of the gradient (reverse)" in text.split(" output ")[0]
    assert "gradient (reverse) assumed what the others are compared with" in text


def test_large_sizes_are_told_by_their_names():
    n, d = sp.symbols("n d", integer=True, positive=True)
    f = symad.trace(lambda a: np.sum(a**2), [(n, d)])
    made = symad.verify(f, gradient=lambda a: 2 * a, hostile=False)
    assert any("at d = 65, 257, 1025 and at n = 65, 257, 1025" in note for note in made.notes), made.notes
    assert "in 1 region" not in str(made) and "at 0 more" not in str(made)


BOUNDARIES = "not compared: ties and boundaries of branches"


@pytest.mark.parametrize("f, candidate, has_ties", [
    (sp.Heaviside(x, 1), (1 + sp.sign(x)) / 2, True),  # 1 and 1/2 at 0
    (sp.Piecewise((1, x > 0), (0, True)), sp.Piecewise((1, x >= 0), (0, True)), True),
    (sp.floor(x) + sp.floor(-x), sp.Integer(-1), True),  # 0 and -1 at integers
    (sp.Max(x, 0), (x + sp.Abs(x)) / 2, True),
    (sp.sin(2 * x), 2 * sp.sin(x) * sp.cos(x), False),
    (1 / x, x**-1, False),
])  # fmt: skip
def test_certificates_say_that_ties_are_not_compared(f, candidate, has_ties):
    """Sides that differ at a jump alone are called equal, as documented: the certificate says so."""
    certificate = symad.verify(f, value=candidate)
    assert certificate.status in ("proved", "tested")
    assert (BOUNDARIES in str(certificate)) == has_ties
    assert (BOUNDARIES in certificate._repr_markdown_()) == has_ties
    assert (BOUNDARIES in certificate._repr_html_()) == has_ties


def test_refuted_certificates_speak_of_no_ties():
    assert BOUNDARIES not in str(symad.verify(sp.Max(x, 0), value=sp.Max(x, 1)))

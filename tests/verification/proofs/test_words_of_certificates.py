"""What a certificate prints: names and order of the user, places, and reasons that are sentences."""

import numpy as np
import sympy as sp

import symad

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

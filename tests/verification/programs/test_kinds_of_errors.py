"""Programs that are wrong at single numbers, in a type of few digits, at a later call, or beyond a size."""

import numpy as np
import pytest
import sympy as sp

import symad

x, y = sp.symbols("x y", real=True)
F = x**2 * y + sp.sin(x)
CUBES = symad.trace(lambda q: np.sum(q**3), [(4,)])
PRODUCT = symad.trace(np.prod, [(4,)])
N = sp.Symbol("n", integer=True, positive=True)
ROWS = symad.trace(lambda z: z / (1 + np.exp(-z)), [(N,)])


def slopes(x, y):
    return np.array([2 * x * y + np.cos(x), x**2])


SINGLE = {
    "x is 0": lambda x, y: x == 0,
    "y is 0": lambda x, y: y == 0,
    "x is y": lambda x, y: x == y,
    "a whole number": lambda x, y: float(x).is_integer(),
    "far on one side": lambda x, y: 9 < x < 400,
    "one quadrant": lambda x, y: x > 0 and y < -2,
}


@pytest.mark.parametrize("name", SINGLE)
def test_a_program_that_is_wrong_at_some_numbers_is_refuted(name):
    def wrong(x, y):
        return slopes(x, y) * (1.01 if SINGLE[name](x, y) else 1.0)

    assert symad.verify(F, gradient=wrong, hostile=False, seed=1).status == "refuted"
    assert symad.verify(F, gradient=slopes, hostile=False, seed=1).status == "measured"


DIVIDED = {
    "product": (PRODUCT, lambda q: np.prod(q) / q),
    "power": (CUBES, lambda q: 3 * q**3 / q),
    "scalar": (x**2, lambda x: 2 * x if x else float("nan")),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_a_division_by_an_element_that_may_be_zero_is_refuted(name):
    f, program = DIVIDED[name]
    with np.errstate(all="ignore"):
        found = symad.verify(f, gradient=program, hostile=False, seed=2)
    assert found.status == "refuted" and found.witness.right == "nan"
    assert "0.0" in str(found.witness.point)


def test_assumptions_of_symbols_hold_at_all_points():
    p, q = sp.Symbol("p", positive=True), sp.Symbol("q", nonpositive=True)
    seen = []

    def slope(p, q, x):
        seen.append((p, q))
        return 3 * p**3 / p + q, p, 1.0

    for seed in range(3):
        found = symad.verify(p**3 + p * q + x, (p, q, x), gradient=slope, seed=seed, hostile=False)
        assert found.status == "measured", found
    assert all(a > 0 and b <= 0 for a, b in seen) and any(b == 0 for _, b in seen)


def test_a_window_without_points_is_told():
    found = symad.verify(F, gradient=slopes, hostile=False, seed=3)
    (note,) = [n for n in found.notes if "no point was tried" in n]
    low, high = (float(v) for v in note.split("with ")[1].split(" or ")[0].split(" < x < "))
    called = []

    def program(x, y):
        called.append(x)
        return slopes(x, y)

    symad.verify(F, gradient=program, hostile=False, seed=3)
    digits = 1e-3 * min(abs(low), abs(high))
    assert low < high and not any(low + digits < v < high - digits for v in called)


def test_a_program_that_always_raises_is_called_a_few_times():
    calls = []

    def raises(q):
        calls.append(q)
        raise RuntimeError("no kernel")

    found = symad.verify(CUBES, gradient=raises)
    assert found.status == "undecided" and "no kernel" in str(found)
    assert len(calls) <= 20  # five calls, with arrays of NumPy and of each other library that is loaded


def test_a_program_that_changes_later_is_not_measured():
    calls = []

    def tired(q):
        calls.append(1)
        return 3 * q**2 * (1 + (len(calls) > 150))

    found = symad.verify(CUBES, gradient=tired, hostile=False)
    assert len(calls) > 150 and found.status != "measured"


# ---- types of few digits ------------------------------------------------------------------------


def swish(z):
    s = 1 / (1 + np.exp(-z))
    return s * (1 + z * (1 - s))


SIX = symad.trace(lambda z: np.sum(z / (1 + np.exp(-z))), [(3,)])
TYPES = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 1e-2}
QUICK = ("float16", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("float32", "bfloat16")))


def in_type(name, factor, returned):
    """The slope with each operation rounded, for a type of NumPy; for bfloat16 the result alone."""

    def program(z):
        if name != "bfloat16":
            assert z.dtype == name
            return (swish(z) * np.dtype(name).type(factor)).astype(returned)
        bits = (swish(np.float32(z)) * np.float32(factor)).view(np.uint32)
        kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        return kept.view(np.float32).astype(returned)

    return program


@pytest.mark.parametrize("name", QUICK)
def test_a_right_program_in_a_type_of_few_digits_is_measured(name):
    for returned in ("float64", "float32"):
        found = symad.verify(SIX, gradient=in_type(name, 1.0, returned), computed_in=name, seed=4)
        assert found.status == "measured", found


@pytest.mark.parametrize("name", QUICK)
def test_a_small_error_in_a_type_of_few_digits_is_refuted(name):
    for sign in (1, -1):
        program = in_type(name, 1 + sign * TYPES[name], "float64")
        found = symad.verify(SIX, gradient=program, computed_in=name, hostile=False, seed=4)
        assert found.status == "refuted"
        assert "the median error at " in found.entries[0].reason


def test_results_tell_their_type():
    single = symad.verify(SIX, gradient=lambda z: (swish(z) * (1 + 1e-5)).astype("f4"), hostile=False)
    assert single.status == "refuted" and "roundings of float32" in single.entries[0].reason
    half = symad.verify(SIX, gradient=lambda z: swish(z).astype("f2"), hostile=False)
    assert half.status == "measured"


def test_what_computes_in_single_precision_is_advised():
    found = symad.verify(sp.exp(x), x, value=lambda v: float(np.exp(np.float32(v))), hostile=False, seed=1)
    assert found.status == "refuted" and 'computed_in="float32"' in found.entries[0].reason
    right = symad.verify(sp.exp(x), x, value=lambda v: float(np.exp(v)), hostile=False, computed_in="float32")
    assert right.status == "measured"


def test_types_have_names():
    with pytest.raises(ValueError, match="computed_in is one of 'float64', 'float32'"):
        symad.verify(SIX, gradient=swish, computed_in="half")


# ---- sizes --------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("most", [64, 256])
def test_a_program_that_is_wrong_beyond_a_size_is_refuted(most):
    def wrong(z, bar):
        return np.where(np.arange(len(z)) < most, swish(z), 0.0) * bar

    found = symad.verify(ROWS, vjp=wrong, hostile=False)
    assert found.status == "refuted" and f"n = {most + 1}" in found.entries_of("refuted")[0].name
    right = symad.verify(ROWS, vjp=lambda z, bar: swish(z) * bar, hostile=False)
    assert right.status == "measured" and any("65, 257, 1025" in note for note in right.notes)


def test_inputs_that_a_derivative_does_not_depend_on_are_given_at_all_points():
    """The places where something turns are found without them."""
    f = symad.trace(lambda a, b: np.maximum(a, 1.0) ** 2 + b, [(2,), (2,)])
    found = symad.verify(f, "a", vjp=lambda a, b, bar: 2 * np.maximum(a, 1.0) * (a > 1) * bar, hostile=False)
    assert found.status == "measured", found

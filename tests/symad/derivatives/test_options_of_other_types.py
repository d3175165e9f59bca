"""Options of another type or size than expected: a named error that says what is expected."""

import pytest
import sympy as sp

import symad
from symad.errors import DerivativeError, LoweringError, TraceError
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
f = symad.trace(x**2 + y)


def claim(**options):
    return symad.verify(sp.sin(x), x, gradient=sp.cos(x), **options)


@pytest.mark.parametrize(
    "call, error, told",
    [
        (lambda: symad.implicit(f, []), DerivativeError, r"unknown=\[\] has no symbol"),
        (lambda: symad.jet(f, order=10**400), DerivativeError, "not an integer from 0 to 1,000"),
        (lambda: symad.jet(f, order=-1), DerivativeError, "the order -1 is not an integer"),
        (lambda: claim(where=sp.oo), TraceError, "where= is a SymPy condition"),
        (lambda: claim(where=x + 1), TraceError, "where= is a SymPy condition"),
        (lambda: claim(seed=[]), TypeError, r"seed is an int, or None for a new one, not \[\]"),
        (lambda: claim(seed="1"), TypeError, "seed is an int"),
        (lambda: symad.check(f, seed=1.5), TypeError, "seed is an int"),
        (lambda: lower(f, dtype={1: 2}), LoweringError, r"dtype=\{1: 2\} is not one of 'float64', 'float32'"),
        (lambda: lower(f, dtype=3), LoweringError, "dtype=3 is not one of"),
    ],
)
def test_the_option_is_named(call, error, told):
    with pytest.raises(error, match=told) as raised:
        call()
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    "call",
    [
        lambda text: symad.trace(text),
        lambda text: symad.gradient(f, text),
        lambda text: f(**{text: 1.0}),
        lambda text: f(text, 1.0),
        lambda text: lower(f, backend=text),
        lambda text: lower(f, style=text),
        lambda text: lower(f, dtype=text),
        lambda text: symad.color([[1, 2]], kind=text),
    ],
)
def test_messages_cut_long_values(call):
    with pytest.raises((symad.errors.SymadError, TypeError)) as raised:
        call("q" * 5000)
    assert len(str(raised.value)) < 400 and "qqq" in str(raised.value)

"""Values of contractions against NumPy's einsum: floats of any layout, exact numbers, many label patterns."""

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from symad.core.graph import Node, rebuild, topological
from symad.numbers.contractions import contracted, subscripts
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import input_node
from symad.verification.measuring.references import _slope


@st.composite
def contractions(draw):
    """Labels of one to three arrays, those of the output, and the length of each axis."""
    count = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.sampled_from([1, 1, 2, 3, 5, 0]), min_size=count, max_size=count))
    labels = st.lists(st.integers(0, count - 1), max_size=4).map(tuple)
    inputs = tuple(draw(st.lists(labels, min_size=1, max_size=3).filter(any)))
    present = sorted({x for part in inputs for x in part})
    output = tuple(draw(st.permutations(present)))[: draw(st.integers(0, len(present)))]
    return inputs, output, lengths, draw(st.booleans())


@pytest.mark.thorough
@given(contractions(), st.integers(0, 100))
def test_values_are_those_of_einsum(case, seed):
    inputs, output, lengths, by_columns = case
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-4, 5, [lengths[x] for x in part]).astype(float) for part in inputs]
    arrays = [np.array(a, order="F") for a in arrays] if by_columns else arrays
    expected = np.einsum(subscripts(inputs, output), *arrays)
    found = contracted(inputs, output, arrays)
    assert np.shape(found) == np.shape(expected) and np.array_equal(found, expected)
    exact = [np.frompyfunc(lambda v: Fraction(v) / 3, 1, 1)(a) for a in arrays]
    thirds = np.array(contracted(inputs, output, exact), dtype=object) * 3 ** len(inputs)
    assert np.array_equal(np.array(thirds, dtype=float), expected)


@pytest.mark.parametrize("inputs", [((0, 1), (1, 2)), ((0, 1), (2, 1)), ((1, 0), (1, 2)), ((0, 1), (1,))])
def test_arrays_of_one_element_and_of_none(inputs):
    output = tuple(x for x in (0, 2) if any(x in part for part in inputs))
    for n in (0, 1, 4):
        arrays = [np.full([n if x == 1 else 2 for x in part], 0.5) for part in inputs]
        assert np.array_equal(contracted(inputs, output, arrays), np.full([2] * len(output), n / 4))


def test_a_rewriting_does_not_visit_what_is_replaced():
    a, b, c = (input_node(sympy.Symbol(name, real=True)) for name in "abc")
    inner = mul(a, b)
    outer = mul(inner, inner, c)
    seen = []

    def made(node, args):
        seen.append(node)
        return Node.of(node.op, args)

    assert rebuild([outer], {inner: b}, made) == (mul(b, b, c),)
    assert set(seen) == {outer, c}
    assert topological([outer], [inner]) == [n for n in topological([outer]) if n in seen]


x, y = sympy.symbols("x y", real=True)


@pytest.mark.parametrize(
    "expression",
    [
        x * y * sympy.exp(x * y) + sympy.log(1 + x**2) * sympy.sin(y) - 3,
        x, y, sympy.Integer(2), x**y, (x + y) ** 3 / (1 + sympy.exp(-x)), sympy.Abs(x) * sympy.Max(x, y),
        sympy.Piecewise((x**2 * y, x > 0), (sympy.sin(x), True)) + x, sympy.gamma(x) * sympy.erf(x * y),
    ],
)  # fmt: skip
def test_slopes_term_by_term_are_those_of_diff(expression):
    for symbol in (x, y):
        expected = expression.diff(symbol)
        assert sympy.simplify(_slope(expression, symbol) - expected) == 0

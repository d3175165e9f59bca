"""Loop nests in C against NumPy's values of their bodies: sums, extremes, sines, several results."""

import re

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, Node, topological
from symad.functions import log_softmax
from symad.higher_order.scan import Local
from symad.numbers.values import unchecked
from symad.numeric import lower
from symad.numeric.compiled_arrays.c.c_body import HEAD, functions
from symad.numeric.compiled_arrays.c.drivers import drivers
from symad.numeric.compiled_arrays.c.nest_text import kernel_source
from symad.numeric.compiled_arrays.ufuncs import compiled
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.fusion.nest import Nest, is_reduction, summed, total_of
from symad.ops.arrays.reduction import Extreme, keep_axes
from symad.ops.basic.arithmetic import add, div, mul, sub
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, select

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
FULL, AXES = (5, 700), (1,)
X, Y, V, R, S = LOCALS = tuple(
    Node.of(Local(k, shape)) for k, shape in enumerate([FULL, FULL, FULL[1:], FULL[:1], ()])
)


def random_nest(seed):
    """A nest of 14 random steps with up to two results of each kind."""
    rng = np.random.default_rng(seed)
    whole, rows = [X, Y, broadcast_axes(V, FULL, (1,))], [R]

    def some(nodes):
        return nodes[max(0, len(nodes) - 1 - int(rng.integers(4)))]

    elements = [
        lambda: apply(sp.tanh, some(whole)),
        lambda: apply(sp.sin, some(whole)),
        lambda: apply(sp.sin, mul(constant(2.0**30), X)),  # too large for branch-free code
        lambda: sub(some(whole), keep_axes(some(rows), FULL, AXES)),
        lambda: div(some(whole), add(constant(2), mul(X, X))),
        lambda: select(compare("<", some(whole), Y), some(whole), mul(S, some(whole))),
    ]
    numbers = [
        lambda: mul(constant(1 / FULL[1]), summed(some(whole), AXES)),
        lambda: Node.of(Extreme(str(rng.choice(["max", "min"])), AXES), (some(whole),)),
        lambda: mul(constant(1 / FULL[1]), Node.of(Einsum(((0, 1), (1,)), (0,)), (some(whole), V))),
        lambda: apply(sp.exp, mul(constant(-1), apply(sp.cos, some(rows)))),
    ]
    for _ in range(14):
        whole.append(elements[rng.integers(6)]())
        rows.append(numbers[rng.integers(4)]())
    results = [whole[-1], some(whole[3:]), rows[-1], some(rows[1:])]
    outputs = tuple(dict.fromkeys(results))
    return Nest(Graph(tuple(n for n in LOCALS if n in topological(outputs)), outputs), 0, FULL, AXES)


def run(nests, values):
    """The results of each nest, all compiled together."""
    made = [
        kernel_source(f"k{k}", nest, ["float64"] * 5, ["float64"] * len(nest.body.output_nodes), "double")
        for k, nest in enumerate(nests)
    ]
    text = "".join(kernel.text for kernel in made)
    source = HEAD + drivers(text) + functions([kernel.body for kernel in made], "double") + text
    letters = [f"{'d' * len(kernel.inputs)}->{'d' * len(kernel.results)}" for kernel in made]
    declared = [(f"k{k}", letters[k], kernel.signature) for k, kernel in enumerate(made)]
    for kernel, ufunc in zip(made, compiled(source, declared), strict=True):
        found = ufunc(*(values[o.position] for o in kernel.inputs))
        yield found if isinstance(found, tuple) else (found,)


def agree(seeds):
    rng = np.random.default_rng(0)
    values = [rng.normal(size=node.shape) for node in LOCALS]
    nests = [random_nest(seed) for seed in seeds]
    for order in "CF":  # rows of columns are copied first
        given = [np.asarray(value, order=order) for value in values]
        for nest, found in zip(nests, run(nests, given), strict=True):
            at = {node: values[node.op.position] for node in nest.body.input_nodes}
            expected = unchecked(nest.body.output_nodes, at)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_random_rows():
    agree([1])


@pytest.mark.thorough
def test_more_random_rows():
    agree(range(2, 12))


@pytest.mark.slow
def test_many_random_rows():
    for start in range(12, 112, 20):
        agree(range(start, start + 20))


def shares(shape):
    """Σ over a row of e, e/Σe and Σ(e²): the costly e = tanh(x)³ is needed in two loops."""
    x = Node.of(Local(0, shape))
    e = mul(*[apply(sp.tanh, x)] * 3)
    total = keep_axes(summed(e, AXES), shape, AXES)
    return Nest(Graph((x,), (div(e, total), summed(mul(e, e), AXES))), 0, shape, AXES)


def test_costly_values_wait_in_results():
    """Also in a result that lies over an operand: NumPy copies what overlaps."""
    nest = shares(FULL)
    kernel = kernel_source("k0", nest, ["float64"], ["float64", "float64"], "double")
    assert kernel.text.count("symad_tanh(") == 1
    source = HEAD + drivers(kernel.text) + functions([kernel.body], "double") + kernel.text
    (ufunc,) = compiled(source, [("k0", "d->dd", kernel.signature)])
    x = np.random.default_rng(1).normal(size=FULL)
    e = np.tanh(x) ** 3
    for share, square in (ufunc(x), ufunc(x, x, None)):
        np.testing.assert_allclose(share, e / e.sum(axis=1, keepdims=True), rtol=1e-9)
        np.testing.assert_allclose(square, (e * e).sum(axis=1), rtol=1e-12)


def test_logarithms_of_softmax_keep_their_digits_at_large_scores():
    n = sp.Symbol("n", integer=True, positive=True)
    kernel = lower(symad.trace(lambda x: log_softmax(x, axis=-1), [(n, 3)]), backend="c")
    total = mpmath.log(mpmath.fsum(mpmath.exp(k) for k in range(3)))
    expected = [[float(k - total) for k in range(3)]]
    for shift in (0, 2**10, -(2**40)):
        np.testing.assert_allclose(kernel(np.arange(3.0)[None] + shift), expected, rtol=1e-15)


def test_what_is_one_sum():
    chain = mul(X, Y)
    total = summed(chain, AXES)
    assert is_reduction(total, Nest(Graph((X, Y), (total,)), 0, FULL, AXES))
    assert total_of(Nest(Graph((X, Y), (total,)), 0, FULL, AXES)) is total
    assert total_of(Nest(Graph((X, Y), (apply(sp.exp, total),)), 0, FULL, AXES)) is total
    over = sub(X, keep_axes(total, FULL, AXES))
    assert total_of(Nest(Graph((X, Y), (over,)), 0, FULL, AXES)) is None
    assert total_of(Nest(Graph((X, Y, R), (mul(total, R),)), 0, FULL, AXES)) is None
    assert total_of(Nest(Graph((X, Y), (chain,)), 0, FULL, ())) is None


def _of_numbers(u, c, k):
    scale = np.exp(c) / np.sqrt(1 + c**2)
    return np.where(c > k, scale * u, np.sin(c) * u**2) * np.tanh(k)


@pytest.mark.parametrize("count", [0, 1, 10, 70_000])
def test_functions_of_numbers_are_computed_before_the_loop(count):
    """For arrays of any layout and type, below and above the number of elements that threads divide."""
    f = symad.trace(_of_numbers, [(sp.Symbol("n", integer=True),), (), ()])
    kernel = lower(f, "c")
    (loop,) = re.findall(r"#pragma omp simd\n.*?\n  }\n", kernel.c_source, re.DOTALL)
    assert "y0[j]" in loop
    assert not re.search("exp|tanh|sqrt|sin", loop)
    whole = np.linspace(-2, 2, 2 * count + 2)
    arrays = [whole[:count], whole[: 2 * count : 2], whole[:count][::-1], np.arange(count)]
    for u in (*arrays, whole[:count].astype(np.float32)):
        for c, k in ((0.5, 0.25), (np.float64(-1.0), 1), (np.array(2), np.float32(0.5))):
            expected = _of_numbers(u.astype(float), float(c), float(k))
            np.testing.assert_allclose(kernel(u, c, k), expected, rtol=1e-14)

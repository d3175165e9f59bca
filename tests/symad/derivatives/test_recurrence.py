"""Scans against the same steps written out: values, derivatives in every mode, code, cost."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad import functions
from symad.core.graph import Graph, Node, topological
from symad.core.questions import definition
from symad.derivatives.hessian import MODES
from symad.errors import ShapeError
from symad.higher_order.scan import Scan, scan
from symad.numeric import lower
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import matmul, sum_all
from symad.ops.basic.shaping import slice_axis
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from tests.counting import calls

T, n, d = sp.symbols("T n d", integer=True, positive=True)


def matrix(name: str, *shape: object) -> Node:
    return input_node(sp.MatrixSymbol(name, *shape), shape)


def array(name: str, *shape: object) -> Node:
    return input_node(ArraySymbol(name, shape), shape)


def elman(steps: object, hidden: object, inputs: object) -> tuple[tuple[Node, ...], Node]:
    w, u, h = matrix("W", hidden, hidden), matrix("U", hidden, inputs), matrix("h", hidden, 1)
    x = array("x", steps, inputs, 1)
    y = scan(lambda c, v: apply(sp.tanh, add(matmul(w, c), matmul(u, v))), h, [x])
    return (w, u, h, x), y


def gated(steps: int) -> tuple[tuple[Node, ...], Node]:
    """Two states in one array, a constant that enters twice, and an input that enters squared."""
    w, s, x = matrix("W", 2, 4), matrix("s", 4, 1), array("x", steps, 2, 1)

    def body(state: Node, v: Node) -> Node:
        c = slice_axis(state, 0, 2, 2)
        z = matmul(w, state)
        c_new = add(mul(apply(sp.cos, z), c), mul(v, v))
        return concatenate([apply(sp.tanh, mul(z, c_new)), c_new])

    return (w, s, x), scan(body, s, [x])


def scalar(steps: int) -> tuple[tuple[Node, ...], Node]:
    a, s = input_node(sp.Symbol("a", real=True)), array("s", steps)
    return (a, s), scan(lambda c, v: add(mul(a, c), apply(sp.sin, v)), a, [s])


def autonomous(steps: int) -> tuple[tuple[Node, ...], Node]:
    """A body that reads no input: only the number of steps counts."""
    a, s = input_node(sp.Symbol("a", real=True)), array("s", steps)
    return (a, s), scan(lambda c, v: mul(a, c, add(constant(1), mul(constant(-1), c))), a, [s])


CASES = {
    "elman": elman(4, 2, 3),
    "gated": gated(3),
    "scalar": scalar(5),
    "autonomous": autonomous(4),
    "one step": scalar(1),
}


def values_of(inputs: tuple[Node, ...]) -> list[object]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-0.9, 0.9, size=k.shape) if k.shape else float(rng.uniform(0.2, 0.9)) for k in inputs]


def written_out(y: Node) -> Node:
    node = definition(y.op, y)
    assert not any(isinstance(k.op, Scan) for k in topological([node]))
    return node  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["value", "forward", "reverse"])
def test_a_scan_equals_its_steps(case: str, mode: str) -> None:
    inputs, y = CASES[case]
    graphs = Graph(inputs, (y,)), Graph(inputs, (written_out(y),))
    if mode != "value":
        graphs = symad.jacobian(graphs[0], mode=mode), symad.jacobian(graphs[1], mode="forward")
    ours, expected = (g(*values_of(inputs)) for g in graphs)
    assert np.allclose(ours, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.sample(17)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_hessians_of_a_scan(case: str, mode: str) -> None:
    inputs, y = CASES[case]
    ours = symad.hessian(Graph(inputs, (sum_all(mul(y, y, y)),)), mode=mode)
    out = written_out(y)
    expected = symad.hessian(Graph(inputs, (sum_all(mul(out, out, out)),)))
    values = values_of(inputs)
    assert np.allclose(ours(*values), expected(*values), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_generated_loops(case: str) -> None:
    inputs, y = CASES[case]
    gradient = symad.gradient(Graph(inputs, (sum_all(mul(y, y)),)))
    values = values_of(inputs)
    for ours, expected in zip(lower(gradient)(*values), gradient(*values), strict=True):
        assert np.allclose(ours, expected, rtol=1e-12, atol=1e-13)


def test_batches_of_sequences() -> None:
    inputs, y = CASES["elman"]
    values = values_of(inputs)
    batched = symad.vmap(Graph(inputs, (y,)), in_axes=(None, None, None, 0))
    stacked = np.stack([values[3], 2 * values[3]])  # type: ignore[operator]
    plain = Graph(inputs, (y,))
    expected = [plain(*values[:3], x) for x in stacked]
    assert np.allclose(batched(*values[:3], stacked), expected, rtol=1e-13)


def test_input_products_and_weight_gradients_leave_the_loop() -> None:
    inputs, y = CASES["elman"]
    source = lower(symad.gradient(Graph(inputs, (sum_all(y),)))).source
    loops = source.rpartition("\ndef ")[2].split("    for ")[1:]
    bodies = ["\n".join(line for line in block.split("\n") if line.startswith("        ")) for block in loops]
    assert len(bodies) == 2
    assert not re.search(r"\bU\b", "".join(bodies))
    assert all(len(re.findall(r"@|np\.matmul|\.dot\(", body)) == 1 for body in bodies)
    assert "np.tanh" in bodies[0]
    assert "np.tanh" not in bodies[1]


def test_symbolic_length_and_sizes() -> None:
    inputs, y = elman(T, n, d)
    graph = symad.gradient(Graph(inputs, (sum_all(mul(y, y)),)))
    kernel = lower(graph)
    rng = np.random.default_rng(1)
    for steps, hidden, width in [(5, 2, 3), (1, 1, 1), (8, 3, 2)]:
        values = [
            rng.normal(size=s) for s in [(hidden, hidden), (hidden, width), (hidden, 1), (steps, width, 1)]
        ]
        fixed_inputs, fixed = elman(steps, hidden, width)
        out = written_out(fixed)
        expected = symad.gradient(Graph(fixed_inputs, (sum_all(mul(out, out)),)))(*values)
        for ours, theirs in zip(kernel(*values), expected, strict=True):
            assert np.allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def test_the_graph_does_not_grow_with_the_number_of_steps() -> None:
    def gradient(steps):
        inputs, y = elman(steps, 3, 2)
        return symad.gradient(Graph(inputs, (sum_all(y),)))

    assert len(gradient(10).nodes) == len(gradient(10_000).nodes)
    few, many = (calls(lambda steps=steps: lower(gradient(steps))) for steps in (11, 10_001))
    assert many < 1.5 * few


def test_nested_scans() -> None:
    a, x = input_node(sp.Symbol("a", real=True)), array("x", 3, 4)

    def outer(c: Node, row: Node) -> Node:
        inner = scan(lambda s, v: add(mul(a, s), mul(v, c)), c, [row])
        return sum_all(slice_axis(inner, 0, 3, 1))

    y = scan(outer, a, [x])
    graph = symad.gradient(Graph((a, x), (sum_all(mul(y, y)),)))
    a_value, rows = 0.7, np.random.default_rng(0).normal(size=(3, 4))

    def direct(alpha: float, data: np.ndarray) -> float:
        c, total = alpha, 0.0
        for row in data:
            s = c
            for v in row:
                s = alpha * s + v * c
            c = s
            total += c * c
        return total

    step = 1e-6
    numeric = (direct(a_value + step, rows) - direct(a_value - step, rows)) / (2 * step)
    assert float(graph(a_value, rows)[0]) == pytest.approx(numeric, rel=1e-8)
    assert np.allclose(lower(graph)(a_value, rows)[1], graph(a_value, rows)[1], rtol=1e-12)


def test_errors_name_the_shapes() -> None:
    x = array("x", 3, 2)
    with pytest.raises(symad.errors.ShapeError, match="leading time axis"):
        scan(lambda c: c, x, [])
    with pytest.raises(symad.errors.ShapeError, match=r"state has shape \(3, 2\)"):
        scan(lambda c, v: v, x, [x])
    with pytest.raises(symad.errors.ShapeError, match="3 and 4 steps"):
        scan(lambda c, a, b: c, x, [x, array("z", 4, 2)])


@pytest.mark.thorough
def test_no_steps_have_values_but_no_derivatives():
    """The errors name the size: a state before the first step would be read by its position from the end."""
    T = sp.Symbol("T", integer=True, positive=True)
    shapes, point = [(3,), (T, 3)], [np.ones(3), np.ones((0, 3))]
    total = symad.trace(lambda h, xs: functions.scan(lambda h, x: np.tanh(h * x), h, xs).sum(), shapes)
    last = symad.trace(lambda h, xs: functions.fold(lambda h, x: np.tanh(h * x), h, xs), shapes)
    assert total(*point) == lower(total)(*point) == lower(total, backend="c")(*point) == 0
    for graph in (last, symad.gradient(total)):
        with pytest.raises(ShapeError, match="at T = 0: elements -1 to -1 of axis 0 were asked for"):
            graph(*point)
        for backend in ("numpy", "c"):
            with pytest.raises(ValueError, match="arrays are too short: T - 1 is negative at T = 0"):
                lower(graph, backend=backend)(*point)

"""Loops as statements: the interpreter computes the values of the graph; the arrays that values share."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.cost import schedule
from symad.higher_order.scan import Scan
from symad.numeric import lower
from symad.numeric.compiled_arrays.choose_kernels import fuse, has_c_steps
from symad.numeric.passes.blocking import row_blocks
from symad.numeric.pipelines import (
    ARRAY_GRAPH,
    BLOCK_GRAPH,
    COMPILED_GRAPH,
    KERNEL_GRAPH,
    NUMPY_GRAPH,
    in_place,
    run_graph_passes,
    run_program_passes,
)
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import Index, Read
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.statements import Allocate, Store, assignments, every_statement
from symad.numeric.program_passes.loops import open_bodies
from symad.numeric.program_passes.memory.allocation import shown
from symad.numeric.scheduling.plans import block_of
from symad.ops.arrays.stacking import Concatenate
from symad.ops.basic.shaping import Pad
from tests.numeric.programs import plain_cases as cases

T, n = 6, 4


def rnn(W, xs, h):
    return functions.scan(lambda s, x: np.tanh(W @ s + x), h, xs)


def pair(W, xs, h):
    return functions.scan(lambda s, x: (np.tanh(W @ s[0] + x), s[0] * s[1]), (h, h), xs)


def joined(W, xs, h):
    """The states before each step, as backward passes read them."""
    states = rnn(W, xs, h)
    return np.sum(np.concatenate([h[None], states[:-1]]) ** 2 * states)


CASES = {
    "all states": lambda W, xs, h: np.sum(rnn(W, xs, h) ** 2),
    "the last state": lambda W, xs, h: np.sum(rnn(W, xs, h)[-1] ** 2),
    "the states before": joined,
    "from the end": lambda W, xs, h: np.sum(np.flip(rnn(W, xs, h), 0) * xs),
    "a result": lambda W, xs, h: (rnn(W, xs, h), np.sum(xs)),
    "from the end, a result": lambda W, xs, h: np.flip(rnn(W, xs, h), 0),
    "no state is read": lambda W, xs, h: np.sum(functions.scan(lambda s, x: np.tanh(W @ x), h, xs) ** 2),
    "the state is the input": lambda W, xs, h: np.sum(functions.scan(lambda s, x: x, h, xs) * W[0]),
    "the state stays": lambda W, xs, h: np.sum(functions.scan(lambda s, x: s, h, xs) * xs),
    "numbers": lambda W, xs, h: np.sum(functions.scan(lambda s, x: np.sin(s * x[0]) + h[1], h[0], xs)),
    "two states": lambda W, xs, h: np.sum(pair(W, xs, h)[0] * pair(W, xs, h)[1]),
    "one of two states": lambda W, xs, h: np.sum(pair(W, xs, h)[1][-1]),
    "stacked": lambda W, xs, h: np.sum(
        functions.scan(lambda s, x: np.stack([np.tanh(W @ s[0] + x), s[1] * x]), np.stack([h, h]), xs) ** 2
    ),
    "a loop in a loop": lambda W, xs, h: np.sum(
        functions.scan(lambda s, x: functions.scan(lambda r, y: np.sin(r * y) + s, x, W)[-1], h, xs)
    ),
    "one after the other": lambda W, xs, h: np.sum(rnn(W, xs, rnn(W, xs, h)[-1])),
    "a state joined with inputs": lambda W, xs, h: np.sum(
        functions.scan(
            lambda s, x: np.tanh(np.concatenate([W, 2 * W], axis=1) @ np.concatenate([s, x])), h, xs
        )
        ** 2
    ),
    "the same matrix twice": lambda W, xs, h: np.sum(rnn(W.T, xs, h) @ W),
}


def opened(graph):
    """The prepared graph, its program before all passes, and its program after those for NumPy."""
    graph = run_graph_passes(graph, (*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH))
    order = schedule(Graph((), graph.output_nodes))
    order = [*graph.input_nodes, *(node for node in order if node not in graph.input_nodes)]
    program = block_of(order, graph.output_nodes, graph.input_nodes, graph.structure).program
    return program, run_program_passes(program, in_place("float64"))


def statements(program, kind):
    return [s for s in every_statement(program.statements) if isinstance(s, kind)]


@pytest.mark.parametrize("derivative", [None, "gradient", "hvp"])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_program_computes_what_the_graph_does(name, symbolic, derivative):
    count = sp.Symbol("T", integer=True, positive=True) if symbolic else T
    graph = symad.trace(CASES[name], [(n, n), (count, n), (n,)])
    if derivative is not None and len(graph.outputs) == 1 and not graph.outputs[0].shape:
        graph = getattr(symad, derivative)(graph)
    values = cases.point(graph) if not symbolic else None
    if values is None:
        rng = np.random.default_rng(3)
        sizes = [tuple(T if d == count else d for d in node.shape) for node in graph.input_nodes]
        values = [rng.normal(size=s) for s in sizes]
    expected = graph(*values)
    before, after = opened(graph)
    cases.assert_same(run_program(before, values), expected)
    cases.assert_same(run_program(after, values), expected)
    assert statements(after, Loop)
    for backend in ("numpy", "c"):
        cases.assert_same(lower(graph, backend=backend)(*values), expected)
    assert not any(isinstance(getattr(e, "op", None), Scan) for s in after.statements for e in s.expressions)


def test_the_states_before_all_steps_are_rows_of_the_same_array():
    _, program = opened(symad.trace(joined, [(n, n), (T, n), (n,)]))
    (array,) = statements(program, Allocate)
    assert array.value.shape == (T + 1, n)
    (first,) = statements(program, Store)
    assert first.array is array.value and first.position.offset == 0


def test_a_state_that_only_the_next_step_reads_has_two_rows():
    graph = symad.gradient(symad.trace(CASES["the last state"], [(n, n), (T, n), (n,)]), "W")
    _, program = opened(graph)
    assert sorted(s.value.shape for s in statements(program, Allocate)) == [(2, n), (T, n), (T + 1, n)]
    backward = statements(program, Loop)[-1]
    assert [row.alternates for row in backward.rows].count(True) == 1


def test_numbers_are_stored_and_unread_ones_are_not():
    graph = symad.value_and_gradient(symad.trace(CASES["numbers"], [(n, n), (T, n), (n,)]), "xs")
    _, program = opened(graph)
    forward, backward = statements(program, Loop)
    assert len([s for s in forward.body if isinstance(s, Store)]) == 2  # the states, and sin's derivative
    assert all(row.value.shape for loop in (forward, backward) for row in loop.rows) is False
    check_program(program)


def squares(X):
    return ((X[:, None, :] - X[None]) ** 2).sum(-1)


BLOCK_CASES = {
    "rows": lambda X, a: np.exp(-squares(X)) @ a,
    "sums": lambda X, a: np.sum((np.exp(-squares(X)) @ a) ** 2),
    "a sum of numbers": lambda X, a: np.sum(np.exp(-squares(X)) * np.sin(squares(X))),
    "rows of probabilities": lambda X, a: functions.softmax(X @ X.T) @ X,
    "causal": lambda X, a: functions.softmax(np.where(np.tri(LENGTH) > 0, X @ X.T, -np.inf)) @ X,
}
LENGTH = 100


@pytest.mark.parametrize("derivative", [None, "gradient", "hvp"])
@pytest.mark.parametrize("name", BLOCK_CASES)
def test_blocks_of_rows_compute_what_the_graph_does(name, derivative, monkeypatch):
    monkeypatch.setattr(row_blocks, "MIN_ELEMENTS", 2**10)
    monkeypatch.setattr(open_bodies, "block_height", lambda op: 24)  # the last block is smaller
    shapes = [(LENGTH, 3), (LENGTH,)]
    graph = symad.trace(BLOCK_CASES[name], shapes)
    if derivative:
        loss = symad.trace(lambda X, a: np.sum(graph(X, a) ** 2), shapes)
        graph = getattr(symad, derivative)(loss, "X")
    before, after = opened(graph)
    values = cases.point(graph)
    expected = graph(*values)
    cases.assert_same(run_program(before, values), expected)
    cases.assert_same(run_program(after, values), expected)
    blocks = statements(after, Blocks)
    assert blocks or (name, derivative) == ("a sum of numbers", "gradient")  # which has only chains
    if name == "causal":
        assert any(part.column is not None for block in blocks for part in block.parts)


# ---- compiled steps ------------------------------------------------------------------------------


def gates(W, xs, h):
    """A state of two parts, and gates as parts of one sum, which the backward step joins again."""

    def step(s, x):
        z = np.concatenate([W @ s[0] + x, W @ x])
        return np.stack([np.tanh(z[:n]) * s[1], s[1] + np.sin(z[n:])])

    states = functions.scan(step, np.stack([h, h]), xs)
    return np.sum(states[:, 0] ** 2) + np.sum(states[-1][1])


def compiled(graph):
    """The program for compiled loops, and the values of its loops that are compiled."""
    graph = fuse(run_graph_passes(graph, (*COMPILED_GRAPH, *BLOCK_GRAPH, *KERNEL_GRAPH)), "float64")
    order = schedule(Graph((), graph.output_nodes))
    order = [*graph.input_nodes, *(node for node in order if node not in graph.input_nodes)]
    block = block_of(order, graph.output_nodes, graph.input_nodes, graph.structure)

    def compiles(value):
        op = block.nodes[value].op
        return op.states == 1 and has_c_steps(op.body)

    program = run_program_passes(block.program, in_place("float64", compiles=compiles))
    return program, [loop for loop in statements(program, Loop) if loop.compiled]


@pytest.mark.parametrize("derivative", [None, "gradient", "hvp"])
@pytest.mark.parametrize("name", [*CASES, "gates"])
def test_programs_with_compiled_loops_compute_what_the_graph_does(name, derivative):
    graph = symad.trace({**CASES, "gates": gates}[name], [(n, n), (T, n), (n,)])
    if derivative is not None and len(graph.outputs) == 1 and not graph.outputs[0].shape:
        graph = getattr(symad, derivative)(graph)
    program, loops = compiled(graph)
    values = cases.point(graph)
    cases.assert_same(run_program(program, values), graph(*values))
    assert loops or name == "a loop in a loop"


def test_compiled_steps_compute_the_parts_of_results_in_place():
    program, (forward, backward) = compiled(symad.gradient(symad.trace(gates, [(n, n), (T, n), (n,)]), "W"))
    made = [each for statement in backward.body for each in assignments(statement)]
    arrays = {a.value: shown(a.expression) for a in made if isinstance(a.expression, Read)}
    views = [shown(a.expression) for a in made if isinstance(a.expression, Index)]
    rows = {row.value for row in backward.rows if row.filled}
    assert rows == {arrays.get(view, view) for view in views}  # the cotangents of the state and of the gates
    assert not [a for a in made if a.over is not None and isinstance(a.expression, Read)]  # nothing is copied
    (parts,) = [row for row in forward.rows if row.strides]
    assert parts.strides == ((T + 1) * n, 1)  # all steps of a part are adjacent
    assert [s.value.shape for s in statements(program, Allocate) if s.swapped] == [(T + 1, 2, n)]


def test_padded_results_of_compiled_steps_are_padded_in_their_rows():
    """The cotangents of both products of a gated recurrent unit have zeros where only the other has none."""

    def loss(W, U, xs, h):
        return np.sum(functions.scan(lambda h, x: step(W @ h, U @ x, h), h, xs)[-1] ** 2)

    def step(a, b, h):
        r, z = (functions.sigmoid(a[k * n : k * n + n] + b[k * n : k * n + n]) for k in range(2))
        return (1 - z) * np.tanh(r * a[2 * n :] + b[2 * n :]) + z * h

    graph = symad.gradient(symad.trace(loss, [(3 * n, n), (3 * n, n), (T, n), (n,)]))
    program, loops = compiled(graph)
    values = cases.point(graph)
    cases.assert_same(run_program(program, values), graph(*values))
    made = [each for loop in loops for statement in loop.body for each in assignments(statement)]
    padded = [a for a in made if isinstance(getattr(a.expression, "op", None), Pad)]
    assert len(padded) == 2 and all(a.over is not None for a in padded)  # two that the step also adds up
    value, *_ = lower(graph, backend="c")(*values)
    np.testing.assert_allclose(value, graph(*values)[0], rtol=1e-12)


def test_states_that_begin_with_zeros_share_the_array_of_those_before_the_steps():
    _, program = opened(symad.hvp(symad.trace(CASES["all states"], [(n, n), (T, n), (n,)]), "W"))
    joins = [e for s in every_statement(program.statements) for e in s.expressions]
    assert not any(isinstance(getattr(e, "op", None), Concatenate) for e in joins)

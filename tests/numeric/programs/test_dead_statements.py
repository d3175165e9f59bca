"""`drop_unread`: statements that no result needs are removed, and those that write to needed memory stay."""

import numpy as np
import sympy as sp

import symad
from symad.core.graph import Graph
from symad.cost import schedule
from symad.fused.pair_sum import PairSum
from symad.numeric import lower
from symad.numeric.pipelines import ARRAY_GRAPH, DROP, in_place, run_graph_passes, run_program_passes
from symad.numeric.program.expressions import Compute, Index, Read, Span, Value
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.loops import Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Together, assignments
from symad.numeric.program_passes.memory.dead import drop_unread
from symad.numeric.scheduling.plans import block_of
from symad.ops.elementwise.apply import Apply


def sine(value):
    return Compute(Apply(sp.sin), (Read(value),), value.shape)


def test_writes_to_parts_of_needed_arrays_stay():
    x, whole, part, other, first, second = (Value(s, (3,)) for s in ("x", "whole", "part", "other", "p", "q"))
    view = Assign(part, Index(Read(whole), (Span(0, 3),)))
    needed = [Allocate(whole), view, Assign(first, sine(x), part)]
    dead = [Allocate(other), Assign(second, sine(x), other), Assign(Value("", (3,)), sine(x))]
    program = Program("f", (x,), (dead[0], *needed, *dead[1:]), (Read(whole),), None)
    made = drop_unread(program)
    assert made.statements == tuple(needed)
    np.testing.assert_array_equal(run_program(made, [np.arange(3.0)]), np.sin(np.arange(3.0)))
    both = Together((needed[2], dead[2]))
    assert drop_unread(program.with_statements((*needed[:2], both))).statements == (*needed[:2], both)


def test_rows_that_a_step_is_given_are_filled():
    x, row = Value("x", (3,)), Value("row", (3,))
    fill = Assign(Value("", (3,)), sine(x), row)
    assert drop_unread(Program("step", (x, row), (fill,), (), None)).statements == (fill,)


def test_a_loop_hands_on_and_is_given_only_what_its_steps_read():
    """h_t = tanh(h_{t-1} + y), with y constant; the second state x_t + 1 is never read by a step."""

    def f(xs, h, y):
        def step(state, x):
            return np.tanh(state[0] + y), x + 1

        return symad.functions.scan(step, (h, h), xs)

    graph = symad.trace(f, [(5, 2), (2,), (2,)])
    outputs = run_graph_passes(graph, ARRAY_GRAPH).output_nodes
    given = {node: Value("", node.shape) for node in graph.input_nodes}
    block = block_of(schedule(Graph((), outputs)), outputs, given, graph.structure)
    program = run_program_passes(block.program, (*in_place("float64"), DROP))
    (loop,) = (s for s in program.statements if isinstance(s, Loop))
    assert len(loop.carried) == 1
    rng = np.random.default_rng(0)
    values = [rng.normal(size=node.shape) for node in graph.input_nodes]
    state, wanted = values[1], []
    for x in values[0]:
        state = np.tanh(state + values[2])
        wanted.append((state, x + 1))
    inputs = [values[graph.input_nodes.index(block.nodes[v])] for v in program.inputs]
    for results in (run_program(program, inputs), lower(graph)(*values)):
        for k, result in enumerate(results):
            np.testing.assert_allclose(result, [pair[k] for pair in wanted], rtol=1e-14)


def test_steps_that_do_not_read_their_number_get_no_numbers():
    """Iterations x <- cos(x): the loop over np.arange(T) reads no element of it."""
    graph = symad.trace(
        lambda x: symad.functions.scan(lambda s, k: np.cos(s), x, np.arange(40.0))[-1], [(3,)]
    )
    wanted = x = np.array([0.1, 0.2, 0.3])
    for _ in range(40):
        wanted = np.cos(wanted)
    for options in ({}, {"backend": "c"}, {"style": "plain"}):
        kernel = lower(graph, **options)
        assert "arange" not in kernel.source
        np.testing.assert_allclose(kernel(x), wanted, rtol=1e-14)


def test_the_cotangents_of_a_pair_sum_do_not_compute_the_sum():
    """The gradient of Σ a_i exp(−|x_i − y_j|²) b_j by x; only the value needs the sum."""
    x, y, b = np.array([[0.1], [0.7]]), np.array([[0.2], [0.4], [1.1]]), np.array([[1.0], [2.0], [0.5]])

    def f(x, y, b):
        return np.sum(symad.functions.pairwise(lambda x, y: sp.exp(-((x[0] - y[0]) ** 2)), x, y, b))

    graph = symad.gradient(symad.trace(f, [x.shape, y.shape, b.shape]), 0)
    distance = x - y.T
    wanted = (-2 * distance * np.exp(-(distance**2))) @ b
    for options in ({}, {"backend": "c"}):
        kernel = lower(graph, **options)
        np.testing.assert_allclose(kernel(x, y, b), wanted, rtol=1e-14)
    order = schedule(Graph((), graph.output_nodes))
    program = block_of(order, graph.output_nodes, {n: Value("", n.shape) for n in graph.input_nodes}).program
    ops = [made.expression.op for s in drop_unread(program).statements for made in assignments(s)]
    assert not any(isinstance(op, PairSum) for op in ops)


def test_a_constant_that_is_only_copied_stays():
    """The first state of h_t = tanh(W h_{t-1} + U x_t + b) is an array of zeros, copied beside x_0."""

    def f(W, U, b, x):
        return np.sum(
            symad.functions.scan(lambda h, x_t: np.tanh(W @ h + U @ x_t + b), np.zeros((9, 16)), x) ** 2
        )

    shapes = [(9, 9), (9, 3), (9, 1), (4, 3, 16)]
    graph = symad.value_and_gradient(symad.trace(f, shapes), [0, 1, 2])
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in shapes]
    for found, wanted in zip(lower(graph)(*values), graph(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_sums_that_differ_in_their_reduction_are_two_statements():
    """Σ_j exp(k_ij) b_j and log Σ_j b_j exp(k_ij), with one k and the same arguments."""
    x, y, b = np.array([[0.1], [0.7]]), np.array([[0.2], [0.4], [1.1]]), np.array([1.0, 2.0, 0.5])

    def f(x, y, b):
        def k(x, y):
            return -((x[0] - y[0]) ** 2)

        return [symad.functions.pairwise(k, x, y, b, reduce=kind) for kind in ("sum", "logsumexp")]

    graph = symad.trace(f, [x.shape, y.shape, b.shape])
    order = schedule(Graph((), graph.output_nodes))
    program = block_of(order, graph.output_nodes, {n: Value("", n.shape) for n in graph.input_nodes}).program
    assert not any(isinstance(s, Together) for s in program.statements)
    k = -((x - y.T) ** 2)
    wanted = k @ b, np.log(np.exp(k) @ b)
    for options in ({}, {"backend": "c"}):
        for found, right in zip(lower(graph, **options)(x, y, b), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-13)

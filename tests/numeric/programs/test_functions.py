"""Functions inside programs: the interpreter runs them, and they return no views of their arguments."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.cost import schedule
from symad.numeric import lower, pipelines
from symad.numeric.passes import prepare
from symad.numeric.pipelines import ARRAY_GRAPH, BLOCK_GRAPH, NUMPY_GRAPH, in_place, run_program_passes
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.loops import DefineFunction, Loop
from symad.numeric.program.statements import every_statement
from symad.numeric.scheduling.plans import block_of
from tests.numeric.programs import plain_cases as cases

T, n = 7, 3
POLICIES = ("recompute", 2, "sqrt", "binomial")


def body(results, given, places, bounds=None, repeated=True):
    program = block_of(schedule(Graph((), tuple(results))), results, given).program
    return run_program_passes(program, passes(), check=False)


def passes():
    return (*in_place("float64"), pipelines.functions(body, prepare))


def with_functions(graph):
    """The program of a graph after the passes for NumPy, checked after each, and its functions."""
    graph = pipelines.run_graph_passes(graph, (*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH))
    order = schedule(Graph((), graph.output_nodes))
    order = [*graph.input_nodes, *(node for node in order if node not in graph.input_nodes)]
    program = block_of(order, graph.output_nodes, graph.input_nodes, graph.structure).program
    program = run_program_passes(program, passes())
    return program, [s for s in every_statement(program.statements) if isinstance(s, DefineFunction)]


def fold(memory):
    return lambda W, xs, h: np.sum(functions.fold(lambda s, x: np.tanh(W @ s + x), h, xs, memory=memory) ** 2)


def scan(memory):
    return lambda W, xs, h: np.sum(functions.scan(lambda s, x: np.sin(W @ s * x), h, xs, memory=memory) * xs)


@pytest.mark.parametrize("derivative", [None, "gradient"])
@pytest.mark.parametrize("memory", POLICIES)
@pytest.mark.parametrize("loop", [fold, scan])
def test_the_interpreter_runs_loops_with_memory_policies(loop, memory, derivative):
    graph = symad.trace(loop(memory), [(n, n), (T, n), (n,)])
    graph = graph if derivative is None else getattr(symad, derivative)(graph, "W")
    program, made = with_functions(graph)
    values = cases.point(graph)
    cases.assert_same(run_program(program, values), graph(*values))
    assert {f.value.stem for f in made} == ({"step", "pull"} if derivative else {"step"})


def test_calls_bind_the_number_of_steps_of_a_segment():
    t = sp.Symbol("T", integer=True, positive=True)
    loop = symad.trace(lambda xs, c: functions.fold(
        lambda s, x: functions.fold(lambda r, y: np.sin(r * y) + s, x, xs, memory="sqrt"), c, xs, memory=2
    ), [(t,), ()])  # fmt: skip
    graph = symad.gradient(loop)
    program, made = with_functions(graph)
    values = [np.random.default_rng(0).normal(size=T), 0.3]
    cases.assert_same(run_program(program, values), graph(*values))
    assert len({function.steps for function in made if function.steps is not None}) == 2  # one in the other


def test_a_recomputed_part_is_a_function_that_is_called_once():
    def loss(W, xs, h):
        part = functions.remat(lambda v: np.tanh(np.sin(v) @ W) * v)
        return np.sum(functions.scan(lambda s, x: np.sin(s + x), h, part(xs)) ** 2)

    graph = symad.gradient(symad.trace(loss, [(n, n), (T, n), (n,)]))
    program, made = with_functions(graph)
    values = cases.point(graph)
    cases.assert_same(run_program(program, values), graph(*values))
    assert made and not any(function.repeated for function in made)
    assert any(isinstance(s, Loop) for s in every_statement(program.statements))


def test_a_result_that_is_an_argument_is_copied():
    kept = symad.trace(lambda xs, c: functions.scan(lambda s, x: x[::-1], c, xs, memory=2), [(T, n), (n,)])
    program, (step,) = with_functions(kept)
    assert step.copied == (True,)
    values = cases.point(kept)
    cases.assert_same(run_program(program, values), kept(*values))


@pytest.mark.thorough
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", ["Root 0", "Root 0 forward", "Root 0 back"])
def test_an_implicit_function_calls_its_equations(name, batched):
    graph = cases.examples_of_ops()[name]
    graph = symad.vmap(graph) if batched else graph
    program, (equations, *_) = with_functions(graph)
    assert equations.value.stem == "equations" and len(equations.results) == 2
    shapes = [(3, *node.shape[1:]) if batched else node.shape for node in graph.input_nodes]
    values = [np.random.default_rng(0).uniform(0.5, 1, shape) for shape in shapes]
    cases.assert_same(run_program(program, values), graph(*values))
    cases.assert_same(lower(graph)(*values), graph(*values))

"""Results that are computed in given output arrays: the pass by itself, in the interpreter."""

import numpy as np
import pytest
import sympy as sp

from symad.core.graph import TupleOf, topological
from symad.functions import scan
from symad.numeric import lower
from symad.numeric.pipelines import in_place
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import Compute, Index, Read, Value
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign
from symad.numeric.program_passes.memory.places import write_over
from symad.numeric.program_passes.memory.result_places import put_results
from symad.numeric.scheduling.blocks import block_of
from symad.ops.arrays.stacking import Stack
from symad.ops.basic.arithmetic import Add
from symad.ops.elementwise.apply import Apply
from symad.tracing import trace

x, y = Value("x", (3,)), Value("y", (3,))
POINT = [np.array([0.3, -1.2, 2.0]), np.array([0.5, 0.25, -4.0])]


def function(head, value):
    return Compute(Apply(head), (Read(value),), value.shape)


def total(*values):
    return Compute(Add((1,) * len(values)), tuple(map(Read, values)), values[0].shape)


def stacked(*values):
    return Compute(Stack(0), tuple(map(Read, values)), (len(values), *values[0].shape))


def put(statements, *results):
    """The program that writes every result to an array of its own; the arrays are checked in a run."""
    expressions = tuple(Read(r) if isinstance(r, Value) else r for r in results)
    program = Program("f", (x, y), tuple(statements), expressions, TupleOf((None,) * len(results)))
    check_program(program)
    expected = run_program(program, POINT)
    places = [Value("", e.shape) for e in expressions]
    written = put_results(write_over(program, "float64"), places)
    check_program(written)
    arrays = [np.full(place.shape, np.nan) for place in places]
    for returned, array, right in zip(run_program(written, [*POINT, *arrays]), arrays, expected, strict=True):
        np.testing.assert_array_equal(array, right)
        np.testing.assert_array_equal(returned, right)
    return places, written.statements


def names(count, shape=(3,)):
    return [Value(f"v{k}", shape) for k in range(count)]


def test_a_chain_is_computed_in_the_place_of_its_result():
    a, b, c = names(3)
    chain = [Assign(a, total(x, y)), Assign(b, function(sp.sin, a)), Assign(c, function(sp.exp, b))]
    (place,), made = put(chain, c)
    assert [s.over for s in made] == [place, a, b]


def test_what_something_else_reads_is_not_in_the_way():
    a, b, c, d = names(4)
    made = [Assign(a, total(x, y)), Assign(b, function(sp.sin, a)), Assign(c, function(sp.cos, a))]
    (place,), written = put([*made, Assign(d, total(b, c))], d)
    assert [s.over for s in written if s.writes == (a,)] == [None]
    assert place in [s.over for s in written]


def test_results_that_are_one_or_given_are_copied():
    (a,) = names(1)
    places, written = put([Assign(a, function(sp.sin, x))], a, a, y)
    assert [s.over for s in written] == places
    assert [type(s.expression) for s in written] == [Compute, Read, Read]


def test_a_chain_that_is_two_results_is_copied_to_the_second():
    a, b = names(2)
    places, written = put([Assign(a, total(x, y)), Assign(b, function(sp.sin, a))], b, b)
    assert [s.over for s in written] == [places[0], a, places[1]]


def test_parts_of_a_stack_are_computed_where_they_stand():
    a, b = names(2)
    whole = Value("s", (3, 3))
    (place,), written = put(
        [Assign(a, function(sp.sin, x)), Assign(b, function(sp.cos, x)), Assign(whole, stacked(a, y, b))],
        whole,
    )
    assert not any(isinstance(getattr(s.expression, "op", None), Stack) for s in written)
    views = {s.value: s.expression for s in written if isinstance(s.expression, Index)}
    assert all(view.array == Read(place) for view in views.values())
    assert {s.over for s in written} - {None} == {*views}


def test_a_part_that_is_written_over_after_the_stack_is_copied():
    """exp overwrites the part, which nothing reads after the stack; in its row, it would change the stack."""
    a, b, c = names(3)
    whole = Value("s", (2, 3))
    _, written = put(
        [
            Assign(a, function(sp.sin, x)),
            Assign(b, function(sp.cos, x)),
            Assign(whole, stacked(a, b)),
            Assign(c, function(sp.exp, a)),
        ],
        whole,
        c,
    )
    assert [s.over for s in written if s.writes == (c,)] != [None]


def test_nothing_is_done_without_places():
    program = Program("f", (x,), (), (Read(x),), None)
    assert put_results(program, ()) is program
    assert put_results(program, [None]) is program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_leave_their_results_where_they_are_told_to(seed):
    """Sums, products, functions, stacks and views of two arrays; some values are several results."""
    random = np.random.default_rng(seed)

    def f(u, v):
        known = [u, v]
        for _ in range(12):
            a, b = (known[k] for k in random.integers(len(known), size=2))
            made = [
                a + b,
                a * b - u,
                np.sin(a),
                np.tanh(a * b),
                np.stack([a, b])[int(random.integers(2))],
                a[::-1],
            ]
            known.append(made[random.integers(len(made))])
        chosen = [known[int(k)] for k in random.integers(len(known), size=3)]
        return np.stack(known[-3:]), known[-1], *chosen, known[-1], known[-2] + known[3]

    u, v = (sp.IndexedBase(name, shape=(3,)) for name in "uv")
    graph = trace(f, [u, v])
    block = block_of(topological(graph.output_nodes), graph.output_nodes, graph.input_nodes, graph.structure)
    program, expected = block.program, graph(*POINT)
    places = [Value("", result.shape) for result in program.results]
    arrays = [np.full(place.shape, np.nan) for place in places]
    for step in in_place("float64", places=places):
        program = step.run(program)
        check_program(program)
    given = dict(zip(graph.input_nodes, POINT, strict=True))
    values = [np.array(given[block.nodes[value]]) for value in block.program.inputs]
    run_program(program, [*values, *arrays])
    for array, right in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-14)


def test_steps_of_a_loop_write_their_rows():
    """No step allocates: the first state and all later states are computed in their rows."""
    W, h0, xs = (sp.IndexedBase(n, shape=s) for n, s in (("W", (4, 4)), ("h0", (4,)), ("xs", (5, 4))))
    graph = trace(lambda W, h0, xs: scan(lambda h, x: np.tanh(W @ h + x), h0, xs), [W, h0, xs])
    source = lower(graph).source
    step = source[source.index("h_previous = h0") :]
    assert "h_t)" in step and "h_t[...]" not in step
    rng = np.random.default_rng(0)
    point = [rng.normal(size=s) for s in ((4, 4), (4,), (5, 4))]
    np.testing.assert_allclose(lower(graph)(*point), graph(*point), rtol=1e-12)

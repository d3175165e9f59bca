"""Results that are computed in given output arrays: the pass by itself, in the interpreter."""

from math import prod

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
from symad.numeric.program_passes.memory.boxes import put_together
from symad.numeric.program_passes.memory.result_places import put_results
from symad.numeric.program_passes.memory.reuse import write_over
from symad.numeric.scheduling.plans import block_of
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Pad, Reshape
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


def test_a_part_with_a_view_that_is_written_over_is_copied():
    """exp overwrites a view of the part; in its row, it would change the stack."""
    a, b = names(2)
    whole, view, c, d = Value("s", (2, 3)), Value("r", (3, 1)), Value("c", (3, 1)), Value("d", (1,))
    column = Compute(Reshape((3, 1)), (Read(a),), (3, 1))
    sums = Compute(Einsum(((0, 1),), (1,)), (Read(c),), (1,))
    made = [Assign(a, function(sp.sin, x)), Assign(b, function(sp.cos, x)), Assign(whole, stacked(a, b))]
    _, written = put(
        [*made, Assign(view, column), Assign(c, function(sp.exp, view)), Assign(d, sums)], whole, d
    )
    assert [s.over for s in written if s.writes == (c,)] == [view]


def test_a_part_of_two_assembled_values_is_computed_in_one_and_copied_to_the_other():
    a, b, c = names(3)
    first, second = Value("s", (2, 3)), Value("s", (2, 3))
    made = [Assign(v, function(head, x)) for v, head in ((a, sp.sin), (b, sp.cos), (c, sp.exp))]
    _, written = put([*made, Assign(first, stacked(a, b)), Assign(second, stacked(c, a))], first, second)
    assert [s.expression for s in written if s.over and isinstance(s.expression, Read)] == [Read(a)]


def test_parts_of_a_concatenation_are_computed_where_they_stand():
    a, b = names(2)
    whole = Value("s", (6,))
    joined = Compute(Concatenate(0), (Read(a), Read(b)), (6,))
    (place,), written = put(
        [Assign(a, function(sp.sin, x)), Assign(b, function(sp.cos, x)), Assign(whole, joined)], whole
    )
    views = {s.value: s.expression for s in written if isinstance(s.expression, Index)}
    assert [view.array for view in views.values()] == [Read(place)] * 2
    assert {s.over for s in written} - {None} == {*views}


@pytest.mark.parametrize("parts", ["rows", "all"])
def test_parts_in_parts_are_computed_in_the_place(parts):
    """[[0, sin x, 0], [cos x, y]]: only y is copied, and zeros are written once."""
    a, b = names(2)
    padded, joined, whole = Value("p", (6,)), Value("j", (6,)), Value("s", (2, 6))
    statements = [
        Assign(a, function(sp.sin, x)),
        Assign(b, function(sp.cos, x)),
        Assign(padded, Compute(Pad((1,), (1,), (6,)), (Read(a),), (6,))),
        Assign(joined, Compute(Concatenate(0), (Read(b), Read(y)), (6,))),
        Assign(whole, stacked(padded, joined)),
    ]
    program = Program("f", (x, y), tuple(statements), (Read(whole),), None)
    place = Value("", (2, 6))
    written = put_results(program, [place], parts)
    check_program(written)
    array = np.full((2, 6), np.nan)
    run_program(written, [*POINT, array])
    zero = np.zeros(6)
    zero[1:4] = np.sin(POINT[0])
    np.testing.assert_array_equal(array, [zero, [*np.cos(POINT[0]), *POINT[1]]])
    assert [s.value for s in written.statements if s.over is not None and s.expression == Read(y)]
    joins = {type(getattr(s.expression, "op", None)) for s in written.statements}
    assert joins & {Stack, Concatenate, Pad} == (set() if parts == "all" else {Pad})


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


def test_joined_states_are_computed_in_their_rows():
    """No step joins arrays: the parts of the next state are computed in its row."""

    def step(h, x):
        return np.concatenate([np.tanh(h[2:] + x), h[:2] * x])

    graph = trace(lambda h, xs: scan(step, h, xs), [(4,), (5, 2)])
    kernel = lower(graph)
    assert "concatenate" not in kernel.source
    rng = np.random.default_rng(0)
    first, xs = rng.normal(size=4), rng.normal(size=(5, 2))
    h = first
    expected = [h := step(h, x) for x in xs]
    np.testing.assert_allclose(kernel(first, xs), expected, rtol=1e-14)


def random_parts(seed):
    """A program of sums, functions, stacks, concatenations, views, padded arrays and sums of these."""
    random = np.random.default_rng(seed)
    known, made = [x, y], []

    def add(expression):
        known.append(Value("", expression.shape))
        made.append(Assign(known[-1], expression))
        return known[-1]

    def some(shape=None):
        fitting = [v for v in known if shape is None or v.shape == shape]
        return fitting[-1 - min(int(random.exponential(2)), len(fitting) - 1)]

    def padded(value, start, size):
        return Compute(Pad((start,), (1,), (size,)), (Read(value),), (size,))

    for _ in range(int(random.integers(6, 14))):
        one = some()
        other, count = some(one.shape), prod(one.shape)
        kind = int(random.integers(7)) if len(one.shape) == 1 and count < 20 else int(random.integers(3))
        if kind == 0:
            add(function([sp.sin, sp.cos][random.integers(2)], one))
        elif kind == 1:
            add(total(one, other))
        elif kind == 2:
            add(Compute(Reshape((1, *one.shape)), (Read(one),), (1, *one.shape)))
        elif kind == 3:
            add(stacked(one, other))
        elif kind == 4:
            parts = Read(one), Read(some((3,)))
            add(Compute(Concatenate(0), parts, (count + 3,)))
        else:
            size = count + prod(other.shape) + int(random.integers(0, 2))
            first, last = add(padded(one, 0, size)), add(padded(other, count, size))
            if kind == 6:
                add(total(first, last))
    results = tuple(Read(v) for v in (known[-1], some(), some(), known[-2]))
    return Program("f", (x, y), tuple(made), results, TupleOf((None,) * 4))


@pytest.mark.parametrize("parts", ["rows", "all"])
def test_random_parts_are_computed_or_copied_to_their_places(parts):
    """As for steps in NumPy, and as for compiled steps, where no value overwrites another before."""
    viewed = 0
    for seed in range(150):
        program = random_parts(seed)
        check_program(program)
        expected = run_program(program, POINT)
        places = [Value("", r.shape) for r in program.results]
        begun = write_over(program, "float64") if parts == "rows" else program
        written = put_results(put_together(begun, True), places, parts)
        check_program(written)
        arrays = [np.full(place.shape, np.nan) for place in places]
        returned = run_program(written, [*POINT, *arrays])
        for array, value, right in zip(arrays, returned, expected, strict=True):
            np.testing.assert_array_equal(array, right)
            np.testing.assert_array_equal(value, right)
        viewed += sum(isinstance(s.expression, Index) for s in written.assigned)
    assert viewed > 200

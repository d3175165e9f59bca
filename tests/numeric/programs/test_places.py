"""Buffers of values in programs of array code: which value overwrites which, and when memory is released.

A program runs in the interpreter, which overwrites and releases arrays as the program says:
a value that is overwritten too early changes a result, one that is released too early is missing.
"""

import numpy as np
import pytest
import sympy as sp

from symad.core.graph import Graph, TupleOf, topological
from symad.cost import schedule
from symad.errors import LoweringError
from symad.numeric.numpy_arrays import lower
from symad.numeric.pipelines import ARRAY_GRAPH, BLOCK_GRAPH, NUMPY_GRAPH, in_place, keeps_memory, releases
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import Compute, Read, Value
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Free, Together
from symad.numeric.program.uses import lifetimes
from symad.numeric.program_passes.lines.by_twos import by_twos, repeat_where_read
from symad.numeric.program_passes.memory import reuse
from symad.numeric.program_passes.memory.allocation import keeping, shown
from symad.numeric.program_passes.memory.reuse import keep_memory, release, write_over
from symad.numeric.scheduling.plans import block_of
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from tests.numeric.programs import plain_cases as cases

GRAPHS = {**cases.examples_of_ops(), **{name: make() for name, make in cases.LISTINGS.items()}}
SOME = {name: GRAPHS[name] for k, name in enumerate(GRAPHS) if k % 2 or name in cases.LISTINGS}

SINGLE = [Apply(sp.sin), Apply(sp.exp), Apply(sp.tanh)]
n = sp.Symbol("n", integer=True, positive=True)
SHAPE = (3, 4)
EPS = np.finfo(float).eps

x, y, one = Value("x", (3,)), Value("y", (3,)), Value("one", ())


def random_program(seed):
    """Functions, sums, products, squares, transposes, slices and broadcasts of arrays of shape (3, 4)."""
    rng = np.random.default_rng(seed)
    inputs = [Value("x", SHAPE), Value("y", SHAPE)]
    values, statements = [*inputs], []

    def made(op, args, shape):
        value = Value("", shape)
        statements.append(Assign(value, Compute(op, tuple(map(Read, args)), shape)))
        return value

    def late():
        """A random value, in most cases one of the last."""
        return values[-1 - min(int(rng.exponential(1.5)), len(values) - 1)]

    for _ in range(int(rng.integers(3, 14))):
        a, b, kind = late(), late(), rng.integers(8)
        if kind < 2:
            values.append(made(SINGLE[rng.integers(3)], [a], SHAPE))
        elif kind < 4:
            args = [a, b, late()][: int(rng.integers(2, 4))]
            signs = tuple(int(s) for s in rng.choice([1, -1], len(args)))
            values.append(made(Add(signs), args, SHAPE))
        elif kind == 4:
            values.append(made(Mul((1, 1)), [a, b], SHAPE))
        elif kind == 5:  # a view of a view of a view, in another order
            flat = made(Reshape((4, 3)), [made(Reshape((12,)), [a], (12,))], (4, 3))
            values.append(made(Einsum(((0, 1),), (1, 0)), [flat], SHAPE))
        elif kind == 6:
            part = made(Slice((0, 0), (1, 4), (1, 1)), [a], (1, 4))
            row = made(Reshape((4,)), [part], (4,))
            values.append(made(Broadcast(SHAPE, (1,)), [row], SHAPE))
        else:
            square = Compute(Pow(), (Read(a), Compute(constant(2).op, (), ())), SHAPE)
            values.append(Value("", SHAPE))
            statements.append(Assign(values[-1], square))
    results = (Read(late()), Read(late()))
    return Program("f", tuple(inputs), tuple(statements), results, TupleOf((None, None)))


def operands_of(statement):
    """The number of arrays that a sum, product, maximum or minimum reads; 1 for other ops."""
    op = statement.expression.op
    return len(statement.expression.args) if isinstance(op, (Add, Mul)) or op == Apply(sp.Max) else 1


def overs(program):
    return sum(isinstance(s, Assign) and s.over is not None for s in program.statements)


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_random_programs_keep_their_results(start):
    written = freed = 0
    for seed in range(start, start + 100):
        program = random_program(seed)
        check_program(program)
        points = list(np.random.default_rng(seed).normal(size=(2, *SHAPE)))
        expected = [np.copy(a) for a in run_program(program, points)]
        placed = write_over(repeat_where_read(program), "float64")
        for made, ulps in ((release(placed, 0), 0), (release(by_twos(placed), 0), 1e6)):
            check_program(made)
            inputs = [p.copy() for p in points]
            for found, wanted in zip(run_program(made, inputs), expected, strict=True):
                size = np.max(np.abs(wanted), initial=1, where=np.isfinite(wanted))  # terms cancel
                np.testing.assert_allclose(found, wanted, rtol=0, atol=ulps * EPS * size)
            np.testing.assert_array_equal(inputs, points)
        assert all(isinstance(s, Free) or operands_of(s) <= 2 for s in made.statements)
        written += overs(placed)
        freed += sum(isinstance(s, Free) for s in made.statements)
    assert written > 60 and freed > 60


@pytest.mark.sample(62)
@pytest.mark.parametrize("name", SOME)
def test_array_code_keeps_the_function(name):
    graph = SOME[name]
    values = cases.point(graph)
    expected = graph(*values)
    for step in (*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH):
        graph = step.run(graph)
    order = schedule(Graph((), graph.output_nodes))
    order = [*graph.input_nodes, *(node for node in order if node not in graph.input_nodes)]
    program = block_of(order, graph.output_nodes, graph.input_nodes, graph.structure).program
    for step in (*in_place("float64"), keeps_memory(8, {}), releases(0)):
        check_program(program)
        cases.assert_same(run_program(program, values), expected)
        program = step.run(program)
    check_program(program)
    cases.assert_same(run_program(program, values), expected)


def twos(*statements, result, run=by_twos):
    """The statements after a pass, and the result of the interpreter."""
    made = run(Program("f", (x, y, one), statements, (Read(result),), None))
    check_program(made)
    points = np.arange(1.0, 4.0), np.array([0.5, -2.0, 8.0]), np.array(3.0)
    return made.statements, run_program(made, points)


def test_a_sum_goes_on_in_the_array_that_it_begins_in():
    half = Compute(constant(0.5).op, (), ())
    add = Compute(Add((-1, 1, -1, 1)), (Read(x), Read(y), half, Read(one)), (3,))
    statements, found = twos(Assign(c, add), result=c)
    assert [s.over for s in statements] == [None, statements[0].value]
    first, second = (s.expression for s in statements)
    assert (first.op.signs, first.args) == ((1, -1), (Read(y), Read(x)))
    assert second.op.signs == (1, 1) and second.args[1].op.signs == (-1, 1)  # the numbers are combined before
    np.testing.assert_array_equal(found, [2.0, -1.5, 7.5])
    statements, found = twos(Assign(a, sine(x)), Assign(c, total(y, a, x), a), result=c)
    assert [s.over for s in statements] == [None, a, statements[1].value]
    assert statements[1].expression.args == (Read(a), Read(y))  # the overwritten operand comes first
    np.testing.assert_allclose(found, np.sin([1, 2, 3]) + np.array([1.5, 0.0, 11.0]), rtol=1e-15)


@pytest.mark.parametrize(("powers", "count"), [((-1,), 1), ((-1, -1), 2), ((-1, 1), 1), ((1, -1, -1), 2)])
def test_quotients_begin_with_what_is_not_divided_by(powers, count):
    args = (x, y, x)[: len(powers)]
    quotient = Compute(Mul(powers), tuple(map(Read, args)), (3,))
    statements, found = twos(Assign(c, quotient), result=c)
    assert len(statements) == count
    values = {x: np.arange(1.0, 4.0), y: np.array([0.5, -2.0, 8.0])}
    wanted = np.prod([values[v] ** float(p) for v, p in zip(args, powers, strict=True)], axis=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def repeated(value, axes, shape=(3, 3)):
    return Compute(Broadcast(shape, axes), (Read(value),), shape)


def test_repetitions_stand_where_they_are_read():
    wide, tall, m = (Value(stem, (3, 3)) for stem in ("wide", "tall", "m"))
    begin = Assign(wide, repeated(x, (1,))), Assign(tall, repeated(y, (0,)))
    outer = np.add.outer([0.5, -2.0, 8.0], [1.0, 2.0, 3.0])
    (only,), found = twos(*begin, Assign(m, total(wide, tall)), result=m, run=repeat_where_read)
    assert only.expression.args == (begin[0].expression, begin[1].expression)
    np.testing.assert_array_equal(found, outer)
    sum_ = Assign(m, total(wide, wide))  # no operand has all axes
    statements, found = twos(begin[0], sum_, result=m, run=repeat_where_read)
    assert statements == (begin[0], sum_)
    statements, _ = twos(*begin, Assign(m, sine(tall)), result=m, run=repeat_where_read)
    assert [s.value for s in statements] == [tall, m]  # a function needs the array
    statements, _ = twos(*begin, result=wide, run=repeat_where_read)
    assert [s.value for s in statements] == [wide]  # a result is an array, too


def test_large_results_are_in_memory_that_is_kept():
    long, view, short, rows = Value("l", (300,)), Value("v", (20, 15)), Value("s", (10,)), Value("r", (n, 30))
    every = [Assign(long, sine(long)), Assign(short, sine(short)), Assign(rows, sine(rows), rows)]
    every += [Assign(view, Compute(Reshape((20, 15)), (Read(long),), (20, 15)))]
    rooms = Allocate(long), Allocate(long, zeros=True), Allocate(short)
    program = Program("f", (), (*every, Together((every[0], every[1])), *rooms), (), None)

    def kept(itemsize, bounds):
        made = keep_memory(program, itemsize, bounds).statements
        return [[part.kept for part in getattr(s, "assignments", (s,))] for s in made]

    most = reuse.MIN_KEPT_BYTES
    alone = [[True], [False], [False], [False], [True, False], [True], [False], [False]]
    assert kept(most // 300 + 1, {}) == alone
    assert kept(most // 300, {}) == [[False] * len(each) for each in alone]
    assert kept(most // 300 + 1, {n: 10})[2] == [True]


def test_the_passes_are_told_once_loops_or_not():
    lines = []
    lower.lower(cases.LISTINGS["rnn"](), "float64", False, lines)
    assert [line.name for line in lines][-14:] == [
        "lay out", "repeat where read", "sparse", "write over", "fill", "put", "by twos", "loops", "blocks",
        "keep memory", "functions", "drop", "join slices", "release",
    ]  # fmt: skip
    assert [line.name for line in lines].count("release") == 1


a, b, c = (Value(stem, (3,)) for stem in "abc")


def sine(value):
    return Compute(Apply(sp.sin), (Read(value),), value.shape)


def total(*values, signs=None):
    return Compute(Add(signs or (1,) * len(values)), tuple(map(Read, values)), values[0].shape)


def placed(statements, results, shared=()):
    """For each assignment of a program the value that it overwrites."""
    program = Program("f", (x, y), tuple(statements), tuple(map(Read, results)), None, shared=shared)
    return [s.over for s in write_over(program, "float64").statements]


def test_only_arrays_that_end_are_overwritten():
    first, second = Assign(a, sine(x)), Assign(b, sine(a))
    assert placed([first, second], [b]) == [None, a]
    assert placed([first, second], [a, b]) == [None, None]  # a result
    assert placed([first, second, Assign(c, total(a, b))], [c]) == [None, None, a]  # read again
    assert placed([first, second], [b], shared=((a,),)) == [None, None]  # laid out with others


def test_terms_that_are_added_are_overwritten_first():
    begin = [Assign(a, sine(x)), Assign(b, sine(y))]
    assert placed([*begin, Assign(c, total(a, b, signs=(-1, 1)))], [c])[-1] is b


def test_an_array_that_is_read_twice_in_several_steps_is_not_overwritten():
    begin = Assign(a, sine(x))
    assert placed([begin, Assign(c, total(a, y, a))], [c])[-1] is None
    assert placed([begin, Assign(c, Compute(Mul((1, 1)), (Read(a), Read(a)), (3,)))], [c])[-1] is a


def test_views_with_gaps_and_repetitions_are_not_overwritten():
    big = Value("m", (6,))
    thin = Assign(b, Compute(Slice((0,), (3,), (2,)), (Read(big),), (3,)))
    make = Assign(big, Compute(Einsum(((0,), (1,)), (1,)), (Read(x), Read(Value("z", (6,)))), (6,)))
    assert placed([make, thin, Assign(c, sine(b))], [c])[-1] is None
    part = Assign(b, Compute(Slice((1,), (3,), (1,)), (Read(big),), (3,)))
    assert placed([make, part, Assign(c, sine(b))], [c])[-1] is b


def test_overlapping_ranges_of_one_array_are_not_overwritten():
    big = Value("m", (6,))
    make = Assign(big, Compute(Einsum(((0,), (1,)), (1,)), (Read(x), Read(Value("z", (6,)))), (6,)))

    def ranges(start):
        one, other = (Compute(Slice((k,), (3,), (1,)), (Read(big),), (3,)) for k in (0, start))
        return placed([make, Assign(a, one), Assign(b, other), Assign(c, total(a, b))], [c])[-1]

    assert ranges(3) is a and ranges(2) is None


def test_functions_that_take_no_place_for_the_result():
    begin = Assign(a, sine(x))
    function = Compute(Apply(sp.erfc), (Read(a),), (3,))
    program = Program("f", (x,), (begin, Assign(b, function)), (Read(b),), None)
    assert write_over(program, "float64").statements[1].over is a
    assert write_over(program, "float32").statements[1].over is None


def frees(statements, results, least=0):
    program = Program("f", (x, y), tuple(statements), tuple(map(Read, results)), None)
    return [s.values if isinstance(s, Free) else s.value for s in release(program, least).statements]


def test_memory_is_given_back_where_other_memory_is_taken():
    whole = Compute(Slice((0,), (2,), (1,)), (Read(a),), (2,))
    view, last = Value("view", (2,)), Value("last", (2,))
    statements = [Assign(a, sine(x)), Assign(view, whole), Assign(last, sine(view)), Assign(c, sine(y))]
    assert frees(statements, [last, c]) == [a, view, last, (a, view), c]  # a lives as long as its view
    assert frees(statements, [view, c]) == [a, view, last, (last,), c]
    assert frees(statements[:3], [last]) == [a, view, last]  # the function ends
    assert frees(statements, [last, c], least=4) == [a, view, last, c]


def test_what_is_written_over_goes_on_under_another_value():
    d = Value("d", (3,))
    statements = [Assign(a, sine(x)), Assign(b, sine(a), a), Assign(c, sine(b)), Assign(d, sine(y))]
    assert frees(statements, [c, d]) == [a, b, c, (b,), d]


def test_a_view_of_a_view_under_another_shape_may_be_a_copy():
    matrix, turned, flat = Value("m", (2, 3)), Value("t", (3, 2)), Value("f", (6,))
    made = Compute(Apply(sp.sin), (Read(Value("z", (2, 3))),), (2, 3))
    turn = Compute(Einsum(((0, 1),), (1, 0)), (Read(matrix),), (3, 2))
    again = Compute(Reshape((6,)), (Read(turned),), (6,))
    statements = Assign(matrix, made), Assign(turned, turn), Assign(flat, again)
    program = Program("f", (), statements, (Read(flat),), None)
    assert lifetimes(program, shown).memory[flat] is matrix
    assert flat not in lifetimes(program, keeping(program)).memory


def test_results_of_one_loop_stand_together():
    graph = cases.LISTINGS["lstm"]()
    for step in (*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH):
        graph = step.run(graph)
    statements = block_of(topological(graph.output_nodes), graph.output_nodes).program.statements
    groups = [s.assignments for s in statements if isinstance(s, Together)]
    names = [{type(made.expression.op).__name__ for made in group} for group in groups]
    assert {"LoopValue"} in names and all(len(each) == 1 for each in names)


def broken():
    yield "a is read before", (Assign(a, sine(x)), Assign(b, sine(a), a), Assign(c, sine(a)))
    yield "a is read before", (Assign(a, sine(x)), Free((a,)), Assign(c, sine(a)))
    yield "z is read before", (Assign(a, sine(x)), Free((Value("z", ()),)))
    one = Compute(constant(1).op, (), ())
    yield "a (3,) is given ()", (Assign(a, sine(x)), Assign(Value("s", ()), one, a))


@pytest.mark.parametrize(("words", "statements"), list(broken()))
def test_the_validator_finds_what_is_read_after_its_end(words, statements):
    with pytest.raises(LoweringError) as caught:
        check_program(Program("f", (x,), statements, (), None))
    assert all(word in str(caught.value) for word in words.split())


def test_the_interpreter_shows_what_a_wrong_place_does():
    part = Value("part", (2,))
    view = Compute(Slice((0,), (2,), (1,)), (Read(a),), (2,))
    wrong = Assign(a, sine(x)), Assign(part, view), Assign(c, total(a, a), a)
    program = Program("f", (x,), wrong, (Read(part),), None)
    np.testing.assert_allclose(run_program(program, [np.ones(3)]), 2 * np.sin(np.ones(2)))

"""Sums of padded arrays as arrays that are filled part by part: the pass alone, run by the interpreter."""

import numpy as np
import pytest
import sympy as sp

from symad.core.graph import TupleOf
from symad.numeric.passes.memory_layout.pads import Overlay
from symad.numeric.pipelines import in_place, releases
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import Compute, Index, Position, Read, Span, Value
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign
from symad.numeric.program_passes.memory.boxes import put_together
from symad.numeric.program_passes.memory.reuse import write_over
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Pad, Reshape, Slice
from symad.ops.elementwise.apply import Apply

x, y = Value("x", (3,)), Value("y", (3,))
POINT = [np.array([0.3, -1.2, 2.0]), np.array([0.5, 0.25, -4.0])]


def sine(value):
    return Compute(Apply(sp.sin), (Read(value),), value.shape)


def padded(value, start, total):
    return Compute(Pad((start,), (1,), (total,)), (Read(value),), (total,))


def total(*values, signs=None):
    return Compute(Add(signs or (1,) * len(values)), tuple(map(Read, values)), values[0].shape)


def names(*shapes):
    return [Value(f"v{k}", shape) for k, shape in enumerate(shapes)]


def made(statements, result, in_steps=False, shared=()):
    program = Program("f", (x, y), tuple(statements), (Read(result),), None, shared=shared)
    check_program(program)
    written = put_together(write_over(program, "float64"), in_steps)
    check_program(written)
    np.testing.assert_array_equal(run_program(written, POINT), run_program(program, POINT))
    return written.statements


def ops(statements):
    return [type(getattr(s.expression, "op", s.expression)) for s in statements if isinstance(s, Assign)]


@pytest.mark.parametrize("length", [6, 7])
def test_what_is_padded_is_computed_where_it_goes(length):
    a, left, right, both = names((3,), (length,), (length,), (length,))
    pads = Assign(left, padded(a, 0, length)), Assign(right, padded(y, 3, length))
    statements = made([Assign(a, sine(x)), *pads, Assign(both, total(left, right))], both)
    assert ops(statements) == [Index, Apply, Index, Read, Read]  # y is copied: it is the caller's
    (room,) = (s for s in statements if isinstance(s, Allocate))
    assert room.zeros == (length == 7)
    part, computed = statements[1:3]
    assert computed.value is a and computed.over is part.value
    assert part.expression == Index(Read(room.value), (Span(0, 3),))


def test_what_something_else_reads_is_copied():
    a, left, right, both, last = names((3,), (6,), (6,), (6,), (6,))
    begin = [Assign(a, sine(x)), Assign(left, padded(a, 0, 6)), Assign(right, padded(a, 3, 6))]
    statements = made([*begin, Assign(both, total(left, right))], both)
    assert [s.over for s in statements if s.writes == (a,)] == [None]
    more = [*begin, Assign(both, total(left, right)), Assign(last, total(left, both))]
    assert Pad in ops(made(more, last))  # a padded array that is read twice stays
    meeting = [*begin[:2], Assign(right, padded(a, 2, 6)), Assign(both, total(left, right))]
    assert ops(made(meeting, both)) == [Apply, Pad, Pad, Add]  # the boxes meet
    apart = [*begin[:2], Assign(right, padded(y, 3, 6)), Assign(both, total(left, right))]
    assert [s.over for s in made(apart, both, shared=((a,),)) if s.writes == (a,)] == [None]


def test_axes_that_were_added_are_positions():
    a, row, top, low, both = names((3,), (1, 3), (2, 3), (2, 3), (2, 3))

    def in_row(value, k):
        return Compute(Pad((k, 0), (1, 1), (2, 3)), (Read(value),), (2, 3))

    reshaped = [Assign(a, sine(x)), Assign(row, Compute(Reshape((1, 3)), (Read(a),), (1, 3)))]
    other = Value("other", (1, 3))
    pads = [Assign(other, Compute(Reshape((1, 3)), (Read(y),), (1, 3)))]
    pads += [Assign(top, in_row(row, 0)), Assign(low, in_row(other, 1))]
    statements = made([*reshaped, *pads, Assign(both, total(top, low))], both)
    assert Reshape not in ops(statements)
    assert [s.expression.places[0] for s in statements if ops([s]) == [Index]] == [Position(0), Position(1)]


def test_steps_of_loops_compute_operands_there_too():
    a, b, left, right, both = names((3,), (3,), (6,), (6,), (6,))
    square = Compute(Mul((1, 1)), (Read(a), Read(y)), (3,))
    chain = [Assign(a, sine(x)), Assign(b, square), Assign(left, padded(b, 0, 6))]
    chain += [Assign(right, padded(y, 3, 6)), Assign(both, total(left, right))]
    outside, inside = made(chain, both), made(chain, both, in_steps=True)
    over = [{s.value: s.over for s in each if isinstance(s, Assign)} for each in (outside, inside)]
    assert over[0][a] is None and over[0][b] is not a
    assert over[1][a] is not None and over[1][b] is a


def overlay(*args, start, signs, size):
    return Compute(Overlay(start, signs, size), tuple(map(Read, args)), (size,))


def test_what_overlaps_is_added_where_it_stands():
    a, b, both = names((3,), (3,), (5,))
    add = overlay(a, b, start=(1, 0), signs=(1, -1), size=5)
    statements = made([Assign(a, sine(x)), Assign(b, sine(y)), Assign(both, add)], both)
    assert sum(isinstance(s, Allocate) for s in statements) == 1 and Overlay not in ops(statements)
    (computed,) = (s for s in statements if s.writes == (a,))
    assert computed.over is not None
    (added,) = (s for s in statements if ops([s]) == [Add])
    assert added.expression.op.signs == (1, -1) and added.expression.args[0] == Read(added.over)
    whole = overlay(a, y, start=(0, 0), signs=(1, 1), size=3)
    last = Value("last", (3,))
    statements = made([Assign(a, sine(x)), Assign(last, whole)], last)
    assert not any(isinstance(s, Allocate) for s in statements)  # the first is as long as the sum


def random_program(seed):
    """Sums of parts of arrays, at places that meet or not, among functions of them."""
    rng = np.random.default_rng(seed)
    statements, values = [], [x, y]

    def put(expression):
        values.append(Value("", expression.shape))
        statements.append(Assign(values[-1], expression))
        return values[-1]

    def late():
        return values[-1 - min(int(rng.exponential(1.5)), len(values) - 1)]

    for _ in range(int(rng.integers(2, 6))):
        parts = []
        for _ in range(int(rng.integers(2, 4))):
            one = late()
            start = int(rng.integers(0, max(1, one.shape[0] - 1)))
            count = int(rng.integers(1, min(4, one.shape[0] - start) + 1))
            cut = put(Compute(Slice((start,), (count,), (1,)), (Read(one),), (count,)))
            parts.append(put(sine(cut)) if rng.random() < 0.7 else cut)
            if rng.random() < 0.3:
                parts[-1] = put(Compute(Mul((1, 1, 1)), (Read(parts[-1]),) * 3, parts[-1].shape))
        size = sum(p.shape[0] for p in parts) + int(rng.integers(0, 2))
        if rng.random() < 0.5:
            starts = tuple(int(rng.integers(0, size - p.shape[0] + 1)) for p in parts)
            signs = (1, *(int(s) for s in rng.choice([1, -1], len(parts) - 1)))
            put(overlay(*parts, start=starts, signs=signs, size=size))
        else:
            ends = np.cumsum([p.shape[0] for p in parts])
            if rng.random() < 0.3:
                ends = ends[::-1].cumsum()[::-1] % size + 3  # anywhere: they may meet
            pads = [(p, int(e) - p.shape[0]) for p, e in zip(parts, ends, strict=True)]
            if all(0 <= start <= size - p.shape[0] for p, start in pads):
                put(total(*[put(padded(p, start, size)) for p, start in pads]))
    results = (Read(values[-1]), Read(late()))
    return Program("f", (x, y), tuple(statements), results, TupleOf((None, None)))


@pytest.mark.thorough
@pytest.mark.parametrize("in_steps", [False, True])
def test_random_programs_keep_their_results(in_steps):
    filled = 0
    for seed in range(150):
        program = random_program(seed)
        check_program(program)
        expected = [np.copy(a) for a in run_program(program, POINT)]
        for step in (*in_place("float64", in_steps), releases(0)):
            program = step.run(program)
            check_program(program)
            for found, wanted in zip(run_program(program, [p.copy() for p in POINT]), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
        filled += sum(isinstance(s, Allocate) for s in program.statements)
    assert filled > 150

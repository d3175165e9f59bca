"""Parts of sparse matrices, computed in preallocated arrays: the pass by itself, in the interpreter."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, TupleOf, topological
from symad.errors import LoweringError
from symad.numeric import lower
from symad.numeric.pipelines import (
    ARRAY_GRAPH,
    BLOCK_GRAPH,
    NUMPY_GRAPH,
    in_place,
    keeps_memory,
    releases,
    run_graph_passes,
)
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import Compute, Read, Value
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Scatter
from symad.numeric.program_passes.memory.reuse import write_over
from symad.numeric.program_passes.memory.sparse_places import put_sparse
from symad.numeric.scheduling.plans import block_of
from symad.ops.arrays.gathering import Gather, gather
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Pad, Slice
from symad.ops.basic.sources import array_constant
from symad.ops.elementwise.apply import Apply
from symad.ops.sparse.csr import INDEX, CompressedRows, compressed_rows
from tests.sparsity import random_programs
from tests.sparsity.stencils import STENCILS

x, y = Value("x", (3,)), Value("y", (3,))
POINT = [np.array([0.3, -1.2, 2.0]), np.array([0.5, 0.25, -4.0])]


def names(*shapes):
    return [Value(f"v{k}", shape) for k, shape in enumerate(shapes)]


def function(head, value):
    return Compute(Apply(head), (Read(value),), value.shape)


def total(*values):
    return Compute(Add((1,) * len(values)), tuple(map(Read, values)), values[0].shape)


def reversed_(value):
    index = array_constant(np.array([2, 1, 0]))
    return Compute(Gather(), (Read(value), Compute(index.op, (), index.shape)), value.shape)


def ends(value):
    return Compute(Slice((1,), (2,), (1,)), (Read(value),), (2,))


def matrix(*parts):
    """A sparse row vector with the entries of each part (value, places)."""
    size = 1 + max(k for _, places in parts for k in places)
    stored = [np.asarray(a).astype(INDEX).tobytes() for a in ([0, size], range(size))]
    op = CompressedRows((1, size), *stored, tuple(np.array(p).astype(INDEX).tobytes() for _, p in parts))
    return Compute(op, tuple(Read(value) for value, _ in parts), op.shape)


def placed(statements, *results, gathers=False):
    """The statements after the pass. The results must be the same, also after all later passes."""
    structure = TupleOf((None,) * len(results))
    program = Program("f", (x, y), tuple(statements), tuple(map(Read, results)), structure)
    check_program(program)
    expected = [dense(made) for made in run_program(program, POINT)]
    made = put_sparse(program, "float64", gathers)
    for each in (made, write_over(made, "float64"), finished(program, gathers)):
        check_program(each)
        for value, right in zip(run_program(each, POINT), expected, strict=True):
            np.testing.assert_array_equal(dense(value), right)
    return made.statements


def finished(program, gathers):
    """The program after all passes for NumPy."""
    passes = (*in_place("float64", gathers=gathers), keeps_memory(8, {}), releases(2))
    for step in passes:
        program = step.run(program)
        check_program(program)
    return program


def dense(value):
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


def over(statements, value):
    """The value that a value overwrites."""
    (made,) = (s for s in statements if isinstance(s, Assign) and s.value is value)
    return made.over


def is_placed(statements, value):
    """Whether a value is computed in a part of an array that the program allocated."""
    arrays = {s.value for s in statements if isinstance(s, Allocate)}
    memory = {}
    for s in statements:
        if isinstance(s, Assign):
            source = s.over or getattr(getattr(s.expression, "array", None), "value", None)
            memory[s.value] = memory.get(source, source)
    return memory[value] in arrays


def test_a_chain_is_computed_where_the_matrix_reads_it():
    a, b, whole = names((3,), (3,), (1, 6))
    made = placed(
        [
            Assign(a, total(x, y)),
            Assign(b, function(sp.sin, a)),
            Assign(whole, matrix((b, [5, 0, 3]), (y, [1, 4, 2]))),
        ],
        whole,
    )
    assert over(made, b) is a
    assert is_placed(made, b)
    assert sum(isinstance(getattr(s.expressions[0], "op", None), Gather) for s in made if s.expressions) == 1


def test_entries_with_even_steps_are_not_gathered_by_numpy():
    a, b, whole = names((3,), (3,), (1, 6))
    statements = [
        Assign(a, function(sp.sin, x)),
        Assign(b, function(sp.exp, x)),
        Assign(whole, matrix((a, [0, 2, 4]), (b, [1, 3, 5]))),
    ]
    made = placed(statements, whole)
    assert [type(s) for s in made].count(Allocate) == 1
    assert is_placed(made, a)
    assert is_placed(made, b)
    made = placed(statements, whole, gathers=True)
    assert any(isinstance(getattr(e, "op", None), Gather) for s in made for e in s.expressions)


def test_parts_that_meet_are_added():
    a, b, whole = names((3,), (3,), (1, 5))
    made = placed(
        [
            Assign(a, function(sp.sin, x)),
            Assign(b, function(sp.exp, y)),
            Assign(whole, matrix((a, [0, 1, 2]), (b, [4, 2, 3]))),
        ],
        whole,
    )
    assert is_placed(made, a)
    assert [s.adds for s in made if isinstance(s, Scatter) and s.expression == Read(b)] == [True]


def test_one_part_at_two_places_is_computed_once():
    a, whole = names((3,), (1, 6))
    twice = Assign(whole, matrix((a, [0, 2, 4]), (a, [1, 3, 5])))
    made = placed([Assign(a, function(sp.sin, x)), twice], whole)
    assert is_placed(made, a)
    assert len([s for s in made if isinstance(s, Scatter)]) == 1


def test_views_are_looked_through():
    a, view, back, whole = names((3,), (2,), (3,), (1, 5))
    made = placed(
        [
            Assign(a, function(sp.sin, x)),
            Assign(view, ends(a)),
            Assign(back, reversed_(a)),
            Assign(whole, matrix((view, [3, 0]), (back, [4, 1, 2]))),
        ],
        whole,
    )
    assert is_placed(made, a)
    assert not {view, back} & {v for s in made for v in s.writes}


def test_a_view_that_something_else_reads_stays():
    a, view, other, whole = names((3,), (2,), (2,), (1, 2))
    made = placed(
        [
            Assign(a, function(sp.sin, x)),
            Assign(view, ends(a)),
            Assign(other, function(sp.exp, view)),
            Assign(whole, matrix((view, [1, 0]))),
        ],
        whole,
        other,
        gathers=True,
    )
    assert view in {v for s in made for v in s.writes}
    assert over(made, other) is None


@pytest.mark.parametrize("gathers", [False, True])
def test_parts_that_are_results_keep_their_memory(gathers):
    a, b, whole = names((3,), (3,), (1, 6))
    made = placed(
        [
            Assign(a, function(sp.sin, x)),
            Assign(b, function(sp.exp, a)),
            Assign(whole, matrix((a, [0, 2, 4]), (b, [1, 3, 5]))),
        ],
        whole,
        a,
        whole,
        gathers=gathers,
    )
    assert not is_placed(made, a)
    assert is_placed(made, b)


@pytest.mark.parametrize("gathers", [False, True])
def test_parts_that_are_inputs_and_parts_of_two_matrices(gathers):
    a, one, two = names((3,), (1, 6), (1, 6))
    placed(
        [
            Assign(a, function(sp.sin, x)),
            Assign(one, matrix((a, [5, 0, 2]), (x, [1, 4, 3]))),
            Assign(two, matrix((a, [0, 1, 2]), (y, [3, 4, 5]))),
        ],
        one,
        two,
        x,
        gathers=gathers,
    )


def test_a_part_is_not_overwritten_before_the_matrix_is_made():
    """The matrix reads sin x, not its reversed copy, so that sin x must live until then."""
    a, back, b, c, whole = names((3,), (3,), (3,), (3,), (1, 3))
    made = placed(
        [
            Assign(a, function(sp.sin, x)),
            Assign(back, reversed_(a)),
            Assign(b, function(sp.exp, a)),
            Assign(c, total(b, y)),
            Assign(whole, matrix((back, [0, 2, 1]))),
        ],
        whole,
        c,
        gathers=True,
    )
    program = Program("f", (x, y), made, (Read(whole), Read(c)), None)
    assert over(write_over(program, "float64").statements, b) is None


def test_programs_without_matrices_stay():
    (a,) = names((3,))
    program = Program("f", (x,), (Assign(a, function(sp.sin, x)),), (Read(a),), None)
    assert put_sparse(program, "float64", True) is program


@pytest.mark.parametrize(
    ("array", "places", "message"),
    [(x, [0, 1], "never allocated"), (None, [0, 1], r"given \(3,\) for 2 elements")],
)
def test_wrong_scatters_are_found(array, places, message):
    (made,) = names((4,))
    index = array_constant(np.array(places))
    scatter = Scatter(array or made, Compute(index.op, (), index.shape), Read(y))
    with pytest.raises(LoweringError, match=message):
        check_program(Program("f", (x, y), (Allocate(made), scatter), (Read(x),), None))


def agrees(graph, point, gathers):
    """Assert that the program of a graph computes its values, before and after the passes."""
    expected = [right for part in graph(*point) for right in (part if isinstance(part, tuple) else (part,))]
    prepared = run_graph_passes(graph, (*ARRAY_GRAPH, *BLOCK_GRAPH, *NUMPY_GRAPH))
    outputs = prepared.output_nodes
    structure = TupleOf((None,) * len(outputs))
    block = block_of(topological(outputs), outputs, prepared.input_nodes, structure)
    known = dict(zip(prepared.input_nodes, point, strict=True))
    values = [np.array(known[block.nodes[value]]) for value in block.program.inputs]
    made = run_program(finished(block.program, gathers), values)
    for value, right in zip(made, expected, strict=True):
        np.testing.assert_allclose(dense(value), dense(right), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_random_programs(seed, gathers):
    """Two Jacobians with the values: some parts are results, and some matrices are equal."""
    shapes = random_programs.SHAPES[seed // 2 % len(random_programs.SHAPES)]
    graph = symad.trace(lambda *a: random_programs.program(seed, *a), shapes)
    sparse = symad.jacobian(graph, sparse=True)
    point = [np.random.default_rng(seed).uniform(-1, 1, s) for s in shapes]
    agrees(symad.join(sparse, graph, sparse), point, gathers)


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("name", STENCILS)
def test_stencils(name, gathers):
    f, _, shape = STENCILS[name]
    graph = symad.trace(f, [shape])
    slope = symad.gradient(graph)
    both = symad.join(symad.hessian(graph, sparse=True), slope, symad.jacobian(slope, sparse=True))
    agrees(both, [np.cumsum(np.random.default_rng(0).uniform(0.1, 0.5, shape), axis=-1)], gathers)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_equal_numbers_in_several_sums_of_entries(backend):
    """The square of a discrete Laplacian: its Hessian is 2 AᵀA, and each number is part of many sums."""
    n = 6

    def energy(u):
        inner = u[1:-1, 1:-1]
        return np.sum((u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * inner) ** 2)

    kernel = lower(symad.hessian(symad.trace(energy, [(n, n)]), sparse=True), backend=backend)
    stencil = np.zeros((n - 2, n - 2, n, n))
    for i, j in np.ndindex(n - 2, n - 2):
        stencil[i, j, i + 1, j : j + 3] = stencil[i, j, i : i + 3, j + 1] = 1
        stencil[i, j, i + 1, j + 1] = -4
    rows = stencil.reshape(-1, n * n)
    for seed in range(3):
        u = np.random.default_rng(seed).normal(size=(n, n))
        np.testing.assert_array_equal(kernel(u).toarray(), 2 * rows.T @ rows)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("first", [True, False])
def test_a_matrix_does_not_share_its_entries_with_another_result(backend, first):
    """The entries are a reversed array, which is a result, too."""
    (u,) = symad.trace(lambda u: u, [(5,)]).input_nodes
    reverse = gather(u, array_constant(np.arange(5)[::-1]))
    row_vector = compressed_rows((1, 5), [0, 5], np.arange(5), [(reverse, np.arange(5))])
    outputs = (row_vector, reverse) if first else (reverse, row_vector)
    made = lower(Graph((u,), outputs, TupleOf((None, None))), backend=backend)(np.arange(5.0))
    sparse, values = made if first else made[::-1]
    sparse.data[:] = 7
    assert values.tolist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_empty_results(backend):
    nothing = symad.jacobian(symad.trace(lambda u: np.sin(u)[:0], [(4,)]), sparse=True)
    assert lower(nothing, backend=backend)(np.ones(4)).shape == (0, 4)
    parts = symad.trace(lambda u: np.concatenate([np.sin(u)[:0], np.exp(u), u[3:3]]), [(4,)])
    made = lower(symad.join(symad.jacobian(parts, sparse=True), nothing), backend=backend)(np.ones(4))
    np.testing.assert_allclose(made[0].toarray(), np.e * np.eye(4), rtol=1e-15)


@pytest.mark.parametrize("gathers", [False, True])
def test_a_sum_of_padded_arrays_that_something_else_reads_has_an_array_of_its_own(gathers):
    """`put_together` fills the sum part by part, though its first term is read again."""
    a, b, c, d = names((3,), (6,), (6,), (6,))
    both, m = Value("s", (6,)), Value("m", (1, 6))
    pads = [Compute(Pad((start,), (1,), (6,)), (Read(v),), (6,)) for v, start in ((a, 0), (y, 3))]
    made = [Assign(a, function(sp.sin, x)), Assign(b, pads[0]), Assign(c, pads[1])]
    placed(
        [*made, Assign(both, total(b, c)), Assign(d, total(b, b)), Assign(m, matrix((both, range(6))))],
        m, d, gathers=gathers,
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("inner", [lambda x: np.maximum(x, 0), np.abs, lambda x: 2 * x, np.sin])
def test_softmax_of_a_function_is_written_to_its_place(inner, backend):
    f = symad.trace(lambda x: symad.functions.softmax(inner(x)), [(3, 3)])
    x = np.random.default_rng(0).normal(size=(3, 3))
    found = lower(symad.jacobian(f, ["x"], sparse=True), backend=backend)(x).toarray()
    z = inner(x)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    slope = (inner(x + 1e-7) - inner(x - 1e-7)) / 2e-7
    wanted = np.zeros((9, 9))
    for k in range(3):
        block = (np.diag(p[k]) - np.outer(p[k], p[k])) * slope[k]
        wanted[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = block
    np.testing.assert_allclose(found, wanted, atol=1e-8)

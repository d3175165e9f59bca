"""Programs: the validator, every graph pass and every program pass; no pass parses the text of code."""

import ast
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.dims import plus
from symad.core.graph import Graph, Node, TupleOf, rebuild, topological
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.gpu.passes.fusion import fuse as fuse_for_device
from symad.numeric.compiled_arrays.choose_kernels import fuse as fuse_for_processor
from symad.numeric.expressions.views import compose
from symad.numeric.passes.bodies import BodyOp, LoopValue
from symad.numeric.passes.memory_layout.packed_entries import Pack, SparsePack, is_scalar
from symad.numeric.pipelines import (
    C_PROGRAM,
    GAINS,
    GRAPH_PIPELINES,
    PLAIN_GRAPH,
    PLAIN_PROGRAM,
    PROGRAM_PIPELINES,
    SCALAR_GRAPH,
    SCALAR_PROGRAM,
    in_place,
    keeps_memory,
    releases,
)
from symad.numeric.program.checking import check_program
from symad.numeric.program.expressions import (
    Compute,
    Index,
    Position,
    Read,
    Span,
    Value,
    rewrite,
    values_read,
    whole,
    with_parts,
)
from symad.numeric.program.interpreter import run_program
from symad.numeric.program.loops import Carried, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Store, Together
from symad.numeric.program.uses import lifetimes, uses_of
from symad.numeric.program_passes.lines import scalar_lines
from symad.numeric.scheduling.roles import NO_ROLES
from symad.numeric.scheduling.schedule import schedule
from symad.numeric.stages import in_order
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.sources import constant
from tests.numeric.programs import plain_cases as cases

ROOT = Path(__file__).resolve().parents[3]
GRAPHS = {**cases.examples_of_ops(), **{name: make() for name, make in cases.LISTINGS.items()}}
SOME = {name: GRAPHS[name] for k, name in enumerate(GRAPHS) if k % 3 == 0 or name in cases.LISTINGS}
"""Every third example and all listings; the tests of whole pipelines take all examples."""

over = pytest.mark.parametrize


# ---- passes ---------------------------------------------------------------------------------------


@over("name", SOME)
def test_each_graph_pass_keeps_the_function(name):
    graph = SOME[name]
    values = cases.point(graph)
    expected = graph(*values)
    for step in PLAIN_GRAPH:
        graph = step.run(graph)
        cases.assert_same(graph(*values), expected)


FAST_GRAPH, KERNELS_GRAPH = GRAPH_PIPELINES["numpy"], GRAPH_PIPELINES["c"]


@pytest.mark.sample(65)
@over("name", SOME)
def test_each_graph_pass_of_fast_code_keeps_the_function(name):
    graph = SOME[name]
    values = cases.point(graph)
    expected = graph(*values)
    for step in FAST_GRAPH:
        graph = step.run(graph)
        cases.assert_same(graph(*values), expected)


@pytest.mark.sample(115)
@over("name", SOME)
def test_kernels_of_processor_and_device_are_evaluated(name):
    """A fused kernel is an op like any other: it has a value and a definition."""
    graph = SOME[name]
    values = cases.point(graph)
    expected = graph(*values)
    made = graph
    for step in KERNELS_GRAPH:
        made = step.run(made)
    for fused in (fuse_for_processor(made, "float64"), fuse_for_device(made)):
        cases.assert_same(fused(*values), expected)
        kernels = [n for n in topological(fused.output_nodes) if isinstance(n.op, BodyOp)]
        written = dict(zip(kernels, (definition(n.op, n) for n in kernels), strict=True))
        outputs = rebuild(fused.output_nodes, written)
        cases.assert_same(Graph(fused.input_nodes, outputs, fused.structure)(*values), expected)


@over("name", SOME)
def test_each_program_pass_keeps_the_function(name):
    graph = SOME[name]
    values = cases.point(graph)
    expected = graph(*values)
    for step in PLAIN_GRAPH:
        graph = step.run(graph)
    program = schedule(graph, NO_ROLES)
    cases.assert_same(run_program(program, values), expected)
    for step in PLAIN_PROGRAM:
        program = step.run(program)
        check_program(program)
        cases.assert_same(run_program(program, values), expected)


SCALAR = {name: graph for name, graph in GRAPHS.items() if is_scalar(graph)}


@over("name", SCALAR)
def test_each_pass_on_scalars_keeps_the_function(name, monkeypatch):
    monkeypatch.setattr(scalar_lines, "MAX_STATEMENTS_A_PART", 5)
    monkeypatch.setattr(scalar_lines, "MIN_TOGETHER", 1)
    graph = SCALAR[name]
    values = cases.point(graph)
    expected = graph(*values)
    for step in SCALAR_GRAPH:
        graph = step.run(graph)
        cases.assert_same(graph(*values), expected)
    for pipeline in (SCALAR_PROGRAM, C_PROGRAM):
        program = schedule(graph, NO_ROLES)
        for step in pipeline:
            program = step.run(program)
            check_program(program)
            cases.assert_same(run_program(program, values), expected)


def test_equal_functions_on_a_level_stand_together():
    """exp of x, y, x + y and x − y: two on the first level, two on the second."""
    x, y = sp.symbols("x y")
    graph = symad.trace({"a": sp.exp(x), "b": sp.exp(y), "c": sp.exp(x + y), "d": sp.exp(x - y)})
    program = scalar_lines.in_parts(schedule(graph, NO_ROLES))
    (part,) = scalar_lines.by_levels(program, {sp.exp}).statements
    assert [type(s) for s in part.block] == [Assign] * 6
    levels_of_heads = [type(s.expression.op).__name__ for s in part.block]
    assert levels_of_heads == ["Add", "Add", "Apply", "Apply", "Apply", "Apply"]


def test_four_equal_functions_are_one_statement():
    xs = sp.symbols("x1:6")
    program = scalar_lines.in_parts(schedule(symad.trace(sp.Add(*[sp.sin(2 * s) for s in xs])), NO_ROLES))
    (part,) = scalar_lines.by_levels(program, {sp.sin}).statements
    (pack,) = [s for s in part.block if isinstance(s, Together)]
    assert len(pack.assignments) == 5 and len(part.block) == 7
    (plain,) = scalar_lines.by_levels(program, {sp.cos}).statements
    assert not any(isinstance(s, Together) for s in plain.block)


def test_there_are_scalar_graphs():
    assert len(SCALAR) > 20


def test_stored_entries_equal_their_definition():
    x, y = sp.symbols("x y")
    graph = symad.jacobian(sp.Matrix([x * y, sp.sin(y)]), (x, y), sparse=True)
    (pack,) = (step for step in SCALAR_GRAPH if step.name == "pack")
    packed = pack.run(graph).output_nodes[0]
    assert isinstance(packed.op, SparsePack)
    both = Graph(graph.input_nodes, (packed, definition(packed.op, packed)), TupleOf((None, None)))
    value, meaning = both(2.0, 3.0)
    np.testing.assert_allclose(value.toarray(), [[3, 2], [0, np.cos(3)]], rtol=1e-15)
    np.testing.assert_array_equal(value.toarray(), meaning.toarray())


def test_passes_have_names_of_their_own_and_say_what_they_ensure():
    arrays = (*in_place("float64"), keeps_memory(8, {}), releases(0))
    for pipeline in (*GRAPH_PIPELINES.values(), *PROGRAM_PIPELINES.values(), arrays):
        names = [step.name for step in pipeline]
        assert len(set(names)) == len(names)
        assert all(step.ensures for step in pipeline)


def test_a_pipeline_without_what_a_pass_needs_is_not_built():
    passes = in_place("float64")
    with pytest.raises(ValueError, match="the pass 'put' needs 'fill' before it"):
        in_order(tuple(step for step in passes if step.name != "fill"))
    with pytest.raises(ValueError, match="the pass 'last step' needs 'keep' before it"):
        in_order(tuple(step for step in GRAPH_PIPELINES["numpy"] if step.name != "keep"))


def test_every_pass_of_fast_arrays_says_what_it_gains_or_is_needed():
    """The others make the program that later passes and writers expect, or serve digits and readers."""
    needed = {"expand", "keep", "stabilize", "contract", "lay out", "write over", "put", "by twos", "loops"}
    needed.add("blocks")
    arrays = (*in_place("float64"), keeps_memory(8, {}), releases(0))
    names = {step.name for step in (*GRAPH_PIPELINES["numpy"], *GRAPH_PIPELINES["c"], *arrays)}
    assert names == needed | {*GAINS}


def test_a_loop_equals_its_definition():
    graph = cases.LISTINGS["rnn"]().at(cases.SIZES)
    for step in PLAIN_GRAPH[: [step.name for step in PLAIN_GRAPH].index("keep") + 1]:
        graph = step.run(graph)
    kept = [node for node in graph.nodes if isinstance(node.op, LoopValue)]
    assert kept
    values = cases.point(graph)
    written = [definition(node.op, node) for node in kept]
    both = Graph(graph.input_nodes, (*kept, *written), TupleOf((None,) * 2 * len(kept)))
    made = both(*values)
    for value, meaning in zip(made[: len(kept)], made[len(kept) :], strict=True):
        np.testing.assert_allclose(value, meaning, rtol=1e-13)


def test_packed_entries_equal_their_definition():
    x, y = (symad.trace(s).output_nodes[0] for s in sp.symbols("x y"))
    packed = Node.of(Pack((2, 2)), (x, y, constant(1), x))
    both = Graph((x, y), (packed, definition(packed.op, packed)), TupleOf((None, None)))
    value, meaning = both(2.0, 3.0)
    np.testing.assert_array_equal(value, [[2, 3], [1, 2]])
    np.testing.assert_array_equal(value, meaning)


def test_a_cotangent_of_the_last_state_starts_its_loop():
    """The gradient of a loss of the last state allocates no zeros for all steps."""
    graph = cases.LISTINGS["rnn"]()
    for step in PLAIN_GRAPH:
        graph = step.run(graph)
    assert not [node for node in graph.nodes if type(node.op).__name__ == "Pad"]


def places(rng, shape):
    """A random index of an array of this shape."""
    made = []
    for length in shape:
        start = int(rng.integers(length))
        if rng.random() < 0.3:
            made.append(Position(start))
            continue
        step = int(rng.choice([-2, -1, 1, 2]))
        room = (length - 1 - start if step > 0 else start) // abs(step)
        made.append(Span(start, int(rng.integers(room + 1)) + 1, step))
    return tuple(made)


@over("seed", range(200))
def test_an_index_of_an_index_is_one_index(seed):
    rng = np.random.default_rng(seed)
    array = Value("a", tuple(int(d) for d in rng.integers(1, 6, size=3)))
    values = rng.normal(size=array.shape)
    inner = Index(Read(array), places(rng, array.shape))
    outer = Index(inner, places(rng, inner.shape))
    joined = compose(inner.places, outer.places)
    assert joined is not None
    two = Program("f", (array,), (), (outer,), None)
    one = Program("f", (array,), (), (Index(Read(array), joined),), None)
    np.testing.assert_array_equal(run_program(one, [values]), run_program(two, [values]))


# ---- the validator and the interpreter -------------------------------------------------------------

n = sp.Symbol("n", integer=True, positive=True)


def total(a, b):
    return Compute(Add((1, 1)), (a, b), a.shape)


def sums(backwards=False):
    """The loop h_{t+1} = h_t + x_t with h_0 = 0, from the first x or from the last."""
    x, h, t = Value("x", (n,)), Value("h", (n + 1,)), Value("t", ())
    now, later = Position(0, t), Position(1, t)
    read, write = (later, now) if backwards else (now, later)
    step = Store(h, write, total(Index(Read(h), (read,)), Index(Read(x), (now,))))
    block = (Allocate(h, zeros=True), Loop(t, n, backwards, (), (step,)))
    return Program("sums", (x,), block, (Read(h),), None)


def test_loops_run_both_ways():
    np.testing.assert_array_equal(run_program(sums(), [[1, 2, 3]]), [0, 1, 3, 6])
    np.testing.assert_array_equal(run_program(sums(True), [[1, 2, 3]]), [6, 5, 3, 0])
    np.testing.assert_array_equal(run_program(sums(), [[]]), [0])
    check_program(sums())


def test_carried_values_are_replaced_at_once():
    """Fibonacci's pair (a, b) becomes (b, a + b)."""
    x, a, b, t = Value("x", (n,)), Value("a", ()), Value("b", ()), Value("t", ())
    zero, one = (Compute(constant(k).op, (), ()) for k in (0, 1))
    carried = (Carried(a, zero, Read(b)), Carried(b, one, total(Read(a), Read(b))))
    program = Program("f", (x,), (Loop(t, n, False, carried, ()),), (Read(a), Read(b)), TupleOf((None, None)))
    check_program(program)
    assert run_program(program, [np.zeros(10)]) == (55.0, 89.0)


def broken():
    """Programs with one mistake each, by words of their errors."""
    x, y, h, t = Value("x", (n,)), Value("y", (n,)), Value("h", (n,)), Value("t", ())
    short, other = Value("short", (plus(n, 1),)), Value("z", (sp.Symbol("m"),))
    first, element = Position(0), Index(Read(x), (Position(0),))
    blocks = {
        "y reads h": (Assign(y, total(Read(x), Read(h))),),
        "defined twice": (Assign(y, Read(x)), Assign(y, Read(x))),
        "is given": (Assign(short, Read(x)),),
        "never allocated": (Assign(y, Read(x)), Store(y, first, element)),
        "no index": (Allocate(y), Store(y, Position(0, t), element)),
        "no input binds": (Allocate(other),),
    }
    yield from ((words, Program("f", (x,), block, (Read(x),), None)) for words, block in blocks.items())
    inside = (Loop(t, n, False, (), (Assign(y, Read(x)),)),)
    yield "the result reads y", Program("f", (x,), inside, (Read(y),), None)


@over(("words", "program"), list(broken()), ids=[words for words, _ in broken()])
def test_the_validator_names_what_is_wrong(words, program):
    with pytest.raises(LoweringError) as caught:
        check_program(program)
    said = str(caught.value)
    assert all(word in said for word in words.split())


def test_uses_and_lifetimes():
    program = sums()
    uses = uses_of(program)
    (x,), (allocate, loop) = program.inputs, program.statements
    assert uses.alone(x) and uses.reads[allocate.value] == 2 and allocate.value in uses.stored
    lives = lifetimes(program, lambda expression: None)
    assert [lives.end(value) for value in (x, loop.index, allocate.value)] == [1, 1, 2]
    assert whole((n, 3)) == (Span(0, n), Span(0, 3))


# ---- text is written, never read -------------------------------------------------------------------

FOLDERS = ("program", "expressions", "program_passes", "scheduling", "targets")
READS = {
    "split",
    "rsplit",
    "splitlines",
    "partition",
    "replace",
    "removeprefix",
    "removesuffix",
    "find",
    "rfind",
}
READS |= {"startswith", "endswith", "isidentifier", "index", "match", "search", "sub", "findall", "translate"}
ALLOWED = {
    "target.py": {"rpartition"},  # our own table of names such as scipy.special.erf
    "pasting.py": {"startswith"},  # names of modules
    "roles.py": {"isidentifier"},  # names of functions, from their authors
    "listing.py": {"index", "replace"},  # escapes lines for tables
    "quick_calls.py": {"split"},  # of results into arrays
    "statements.py": {"index"},  # a method of the writer that names loops; lists of statements have it too
    "inlining.py": {"index"},
    "linear_algebra.py": {"index"},
}


def new_files():
    files = [f for folder in FOLDERS for f in sorted((ROOT / "numeric" / folder).rglob("*.py"))]
    others = (
        "pipelines.py",
        "stages.py",
        "plain.py",
        "listing.py",
        "numpy_arrays/scalars/numpy_runs.py",
        "scalars/lower_c.py",
        "scalars/c_interpreter.py",
        "numpy_arrays/scalars/level_runs.py",
        "scalars/lanes.py",
        "scalars/quick_calls.py",
        "passes/memory_layout/packed_entries.py",
    )
    return [*files, *(ROOT / "numeric" / name for name in others)]


@over("path", new_files(), ids=lambda path: path.stem)
def test_nothing_reads_text(path):
    tree = ast.parse(path.read_text("utf-8"))
    imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"re", "tokenize"}
    called = {
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")
    }
    assert called & (READS | {"rpartition"}) <= ALLOWED.get(path.name, set())


def test_new_files_are_small():
    assert all(len(path.read_text("utf-8").splitlines()) <= 400 for path in new_files())


def test_every_statement_of_a_listing_is_needed():
    for make in cases.LISTINGS.values():
        graph = make()
        prepared = graph
        for step in PLAIN_GRAPH:
            prepared = step.run(prepared)
        program = schedule(prepared, NO_ROLES)
        for step in PLAIN_PROGRAM:
            program = step.run(program)
        reads = uses_of(program).reads
        assert all(reads[s.value] for s in program.statements if isinstance(s, Assign))
    assert topological(graph.output_nodes)


def test_the_values_read_by_a_rewritten_expression_are_its_own():
    """They are kept with each expression."""
    a, b, c = (Value(name, ()) for name in "abc")
    old = Compute(Add((1, 1)), (Read(a), Read(b)), ())
    assert values_read(old) == (a, b)
    new = with_parts(old, (Read(c), old))
    assert values_read(new) == (c, a, b)
    assert values_read(rewrite(new, lambda e: Read(c) if e == Read(b) else e)) == (c, a, c)
    assert old == Compute(Add((1, 1)), (Read(a), Read(b)), ())

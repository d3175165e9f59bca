"""Every op answers every question or gives the reason why it does not; the answers agree with each other."""

from typing import Any

import numpy as np
import pytest
import sympy
from plum import NotFoundLookupError

import symad
from symad.cli.ops_table import MISSING, linear_arguments, table
from symad.core import questions
from symad.core.graph import SHAPE, ZERO, Graph, Op, topological
from symad.core.nodes import Moved
from symad.numeric import lower
from symad.numeric.scheduling import roles
from symad.numeric.targets.scalars import write
from symad.numeric.targets.statements import lines
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input
from symad.ops.elementwise.selection import Condition
from symad.saving.saved_ops import load_all_ops

load_all_ops()

WITHOUT_EXAMPLES = {
    "Seed": "stands for a tangent while a graph is linearized",
    "Fresh": "stands for an input while the body of a scan is traced",
    "Captured": "a value of an enclosing function while that is traced",
    "Local": "an input of the body of a scan",
    "Kept": "the states a chain keeps for its backward sweep; the examples of Chain hold it",
    "Fallback": "a norm that is scaled where it overflows; tests/numeric/agreement/test_norms.py compares it",
    "EigenSystem": "the decomposition that EigenValues and EigenVectors read; their examples hold it",
    "CompressedRows": "its value is a scipy matrix, which tests/sparsity compares entry by entry",
}

QUESTIONS = [
    questions.jvp, questions.transpose, questions.batch, questions.evaluate, questions.sympy_form,
    questions.flops, questions.definition, questions.sparsity,
]  # fmt: skip

NODES = {f"{cls.__name__} {k}": n for cls, make in EXAMPLES.items() for k, n in enumerate(make())}


def graph_of(node):
    return Graph(tuple(n for n in topological([node]) if isinstance(n.op, Input)), (node,))


CONCRETE = {
    name: graph_of(node)
    for name, node in NODES.items()
    if not graph_of(node).dims and node.op.__class__.__name__ != "Dimension"
}
REAL = {name: g for name, g in CONCRETE.items() if g.inputs and not isinstance(g.outputs[0].op, Condition)}

over = pytest.mark.parametrize


def points(graph, seed=0, low=0.1, high=0.9):
    rng = np.random.default_rng(seed)
    return [rng.uniform(low, high, n.shape)[()] for n in graph.input_nodes]


def subclasses(cls):
    return {cls}.union(*(subclasses(child) for child in cls.__subclasses__()))


def test_every_op_has_a_shape_and_examples():
    lowering = ("symad.numeric", "symad.gpu")  # ops of the printers are never differentiated
    every = [c for c in subclasses(Op) if c.__module__.startswith("symad.")]
    own = {c for c in every if not c.__module__.startswith(lowering)}
    concrete = own & set(SHAPE)
    assert {c.__name__ for c in concrete - set(EXAMPLES)} == set(WITHOUT_EXAMPLES)
    assert all(c in SHAPE for c in own if not c.__subclasses__())


def test_the_examples_of_an_op_contain_it():
    for cls, make in EXAMPLES.items():
        assert any(isinstance(node.op, cls) for node in make()), cls.__name__


@over("question", QUESTIONS, ids=lambda q: q.__name__)
def test_signatures_are_faithful_so_that_plum_caches_lookups(question):
    unfaithful = [str(m.signature) for m in question.generic.methods if not m.signature.is_faithful]
    assert unfaithful == []


@over("question", [*QUESTIONS, roles.stem, write, lines], ids=lambda q: q.__name__)
def test_answers_are_chosen_by_two_arguments_at_most(question):
    """A kept answer is found again by the classes of the first two."""
    methods = question.generic.methods
    assert len({m.signature.types[:2] for m in methods}) == len(methods)


@pytest.fixture(scope="module")
def answers():
    return table()


def test_no_answer_is_missing(answers):
    missing = {(op, q) for op, row in answers.items() for q, cell in row.items() if cell == MISSING}
    assert missing == set()
    assert set(answers) == {cls.__name__ for cls in EXAMPLES}


@over("name", REAL)
def test_linear_means_linear(name):
    """An op whose tangent is itself adds up; one that says so of all arguments does jointly."""
    node = REAL[name].outputs[0]
    for k, flag in enumerate(linear_arguments(node)):
        if not flag or not isinstance(node.args[k].op, Input):
            continue
        graph = REAL[name]
        position = graph.input_nodes.index(node.args[k])
        a, b = points(graph, 1), points(graph, 2)
        both, other = list(a), list(a)
        both[position], other[position] = a[position] + 2 * b[position], b[position]
        if node.op.linear:
            both = [p + 2 * q for p, q in zip(a, b, strict=True)]
            other = b
        np.testing.assert_allclose(graph(*both), graph(*a) + 2 * graph(*other), rtol=1e-12)


OTHERS = {
    "Apply", "Chain", "Compare", "Extreme", "LogSoftmaxCotangent", "Select", "Undefined",
    "Cholesky", "EigenValues", "EigenVectors", "FoldIn", "MatrixPower", "MatrixPowerDerivative", "Uniform",
}  # fmt: skip
"""Ops that may choose among their arguments by their values, or have values at few arguments alone."""


def test_elements_are_moved_as_the_ops_say():
    """Ops that compute make a number of their own; others have those of their arguments."""
    moving = set()
    for name, graph in CONCRETE.items():
        node, rng = graph.outputs[0], np.random.default_rng(0)
        op, rows = node.op, node.op.row_numbers
        if len(rows) == len(node.args) or op.__class__.__name__ in OTHERS:
            continue
        values = [rng.uniform(1, 2, a.shape) if k not in rows else np.zeros(a.shape, int)
                  for k, a in enumerate(node.args)]  # fmt: skip
        given = np.concatenate([np.ravel(v) for k, v in enumerate(values) if k not in rows] or [[]])
        got, kind = np.ravel(questions.evaluate(op, tuple(values))), op.moves
        moves = len(got) and {*got} <= {0.0, *given}
        assert moves == (kind <= Moved.PADDED), name
        moving |= {op.__class__.__name__} if moves else set()
        if kind <= Moved.SOME:
            assert {*got} <= {*given}, name
        if kind <= Moved.ALL:
            assert {*got} == {*given}, name
        if kind is Moved.IN_ORDER:
            assert [*dict.fromkeys(got)] == [*given], name
    assert moving > {"Broadcast", "Reshape", "Slice", "Pad", "Einsum", "Gather", "Stack", "Triangle"}


def test_row_numbers_have_no_tangents():
    for name, node in NODES.items():
        rows = node.op.row_numbers
        dots = tuple(node.args[k] if k in rows else ZERO for k in range(len(node.args)))
        assert not rows or questions.jvp(node.op, node, dots) is ZERO, name


def test_literals_are_numbers_and_what_is_stored_needs_no_sizes():
    for name, node in NODES.items():
        assert not node.op.literal or (node.shape == () and not node.args), name
        assert not node.op.stored or np.size(questions.evaluate(node.op, ())) >= 1, name
    assert {n.op.__class__.__name__ for n in NODES.values() if n.op.literal} == {"Constant", "Dimension"}
    outside = {cls.__name__ for cls in subclasses(Op) if cls.outside}
    assert outside == {"Input", "Fresh", "Local", "Seed", "Captured"}


@over("name", REAL)
def test_tangents_and_cotangents_are_adjoint(name):
    """⟨y_bar, J x_dot⟩ = ⟨Jᵀ y_bar, x_dot⟩."""
    graph = REAL[name]
    values, dots = points(graph), points(graph, 1, -1, 1)
    y_bar = np.random.default_rng(2).uniform(-1, 1, np.shape(graph(*values)))[()]
    y_dot = symad.pushforward(graph)(*values, *dots)[1]
    x_bars = symad.pullback(graph)(*values, y_bar)[1:]
    across = sum(float(np.sum(b * d)) for b, d in zip(x_bars, dots, strict=True))
    assert float(np.sum(y_bar * y_dot)) == pytest.approx(across, rel=1e-10, abs=1e-12)


@over("name", REAL)
def test_a_batch_is_the_stack_of_its_points(name):
    graph = REAL[name]
    batch = [points(graph, seed) for seed in range(3)]
    expected = np.stack([graph(*values) for values in batch])
    stacked = [np.stack(column) for column in zip(*batch, strict=True)]
    np.testing.assert_allclose(symad.vmap(graph)(*stacked), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.sample(118)
@over("name", CONCRETE)
def test_values_have_the_shape_of_the_node(name):
    graph = CONCRETE[name]
    assert np.shape(graph(*points(graph))) == graph.outputs[0].shape


@over("name", CONCRETE)
def test_operation_counts_are_numbers(name):
    assert symad.flops(CONCRETE[name]) >= 0
    assert symad.flops(CONCRETE[name]).is_Rational


@over("name", [name for name, node in NODES.items() if questions.definition(node.op, node)])
def test_a_fused_op_equals_its_definition(name):
    node = NODES[name]
    graph = graph_of(node)
    defined = Graph(graph.input_nodes, (questions.definition(node.op, node),))
    for seed in range(3):
        values = points(graph, seed, -2, 2)
        np.testing.assert_allclose(graph(*values), defined(*values), rtol=1e-12, atol=1e-14)


@over("name", REAL)
def test_lowered_code_computes_the_same(name):
    graph = REAL[name]
    values = points(graph)
    np.testing.assert_allclose(lower(graph)(*values), graph(*values), rtol=1e-12, atol=1e-14)


@over("name", REAL)
def test_exact_evaluation_agrees_with_floats(name):
    graph = REAL[name]
    values = points(graph)
    exact = [np.vectorize(sympy.Float, otypes=[object])(v)[()] for v in values]
    found = np.asarray(graph(*exact), dtype=object)
    numbers = np.vectorize(lambda e: float(sympy.sympify(e).evalf()), otypes=[float])(found)
    np.testing.assert_allclose(numbers, graph(*values), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("asked", [questions.jvp, questions.transpose, roles.stem], ids=lambda q: q.__name__)
def test_answers_that_are_asked_for_every_node_are_not_converted(asked):
    """plum converts an answer to the class it is annotated with, which costs more than most answers."""
    assert asked.generic.methods
    assert [m for m in asked.generic.methods if m.return_type is not Any] == []


def test_an_answer_registered_after_the_question_was_asked_is_given():
    """The answers that were given are kept, and forgotten when another is registered."""

    class Base:
        pass

    class Derived(Base):
        pass

    def asked(op: Base, target: Base) -> Any:
        """A question with no answers yet."""

    def of_all(op: Base, target: Base) -> Any:
        return "all"

    def of_derived(op: Derived, target: Base) -> Any:
        return "derived"

    def for_derived(op: Derived, target: Derived) -> Any:
        return "both"

    made = questions.question(asked)
    made.dispatch(of_all)
    assert [made(a, b) for a in (Base(), Derived()) for b in (Base(), Derived())] == ["all"] * 4
    made.dispatch(of_derived)
    assert made(Base(), Base()) == "all"
    assert made(Derived(), Derived()) == "derived"
    made.dispatch(for_derived)
    assert [made(Derived(), b) for b in (Base(), Derived(), Base())] == ["derived", "both", "derived"]
    assert made(Base(), Derived()) == "all"


def test_a_question_without_an_answer_names_the_question():
    with pytest.raises(NotFoundLookupError, match="stem"):
        roles.stem(3, ())


@pytest.mark.parametrize("named", ["Unknown", "Any"])
def test_a_rule_whose_class_is_not_known_is_refused(named):
    """It would answer for every op. Any is a class from Python 3.11 on, and refused there too."""
    asked = questions.question(lambda op, y: None)

    def rule(op, y):
        return None

    rule.__annotations__ = {"op": named, "y": "Any"}
    with pytest.raises(TypeError, match=f"rule: '{named}' names no class"):
        asked.dispatch(rule)


TOTAL = {
    name: graph for name, graph in REAL.items()
    if all(n.op.total or n.op.finite_slopes or n.op.linear for n in graph.nodes)
}  # fmt: skip


@over("name", TOTAL)
def test_total_ops_have_values_and_finite_slopes_where_they_say_so(name):
    graph = TOTAL[name]
    smooth = all(n.op.finite_slopes or n.op.linear for n in graph.nodes)
    for at in (0, 1):  # zeros, ties, singular matrices; indices are whole numbers
        values = [np.full(n.shape, at)[()] for n in graph.input_nodes]
        assert np.all(np.isfinite(np.asarray(graph(*values), dtype=float)))
        if smooth:
            directions = [np.ones(n.shape)[()] for n in graph.input_nodes]
            for slope in symad.pushforward(graph)(*values, *directions):
                assert np.all(np.isfinite(np.asarray(slope, dtype=float)))

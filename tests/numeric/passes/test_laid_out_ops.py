"""Ops with a memory layout: the values of their evaluation, and of their printed form."""

import importlib
import pkgutil

import numpy as np
import pytest
import sympy as sp

import symad.gpu
import symad.numeric
from symad.core.graph import Graph, Node, Op
from symad.core.questions import definition, evaluate
from symad.numeric.kernel import compile_source
from symad.numeric.numpy_arrays.elementwise_statements import CLEAR
from symad.numeric.passes.algebra.block_matrices import AddDiagonal, Mosaic
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.passes.memory_layout.pads import Overlay
from symad.ops.basic.sources import input_node


def test_an_overlay_adds_each_part_where_it_stands():
    op = Overlay((1, 0, 2), (1, 1, -1), 5)
    parts = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.array([100.0, 200.0, 300.0])
    np.testing.assert_array_equal(evaluate(op, parts), [10.0, 21.0, -98.0, -197.0, -300.0])


def test_a_mosaic_has_its_blocks_row_by_row():
    op = Mosaic((3, 3), ((0, 0), (0, 2), (2, 0)), ((2, 2), (2, 1), (1, 3)))
    blocks = np.arange(4.0).reshape(2, 1, 2), np.array([[7.0], [8.0]]), np.array([[4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(evaluate(op, blocks), [[0, 1, 7], [2, 3, 8], [4, 5, 6]])


def test_a_spread_shows_elements_by_strides():
    flat = np.arange(20.0)
    shown = np.lib.stride_tricks.as_strided(flat, (3, 4), (5 * 8, 8))
    np.testing.assert_array_equal(evaluate(Spread((3, 4), (5, 1)), (flat,)), shown)


@pytest.mark.parametrize(("width", "step", "size"), [(3, 5, 18), (4, 5, 19), (2, 7, 9), (3, 5, 3)])
def test_gaps_are_cleared_as_printed_code_does(width, step, size):
    flat = np.arange(1.0, size + 1)
    wanted = [value if k % step < width else 0 for k, value in enumerate(flat)]  # it ends after a whole row
    np.testing.assert_array_equal(evaluate(Cleared(((width, step),)), (flat,)), wanted)
    clear = compile_source("_clear", f"import numpy as np\n\n\n{CLEAR}").function
    np.testing.assert_array_equal(clear(flat, ((width, step),)), wanted)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (Overlay((1, 0, 2), (1, 1, -1), 5), [(3,), (2,), (3,)]),
        (Mosaic((3, 3), ((0, 0), (0, 2), (2, 0)), ((2, 2), (2, 1), (1, 3))), [(2, 1, 2), (2, 1), (1, 3)]),
        (Spread((3, 4), (5, 1)), [(20,)]),
        (Cleared(((3, 5), (4, 7))), [(18,)]),
        (AddDiagonal((0, 1, 0), (1, 0), -1), [(2, 3, 2), (3, 2)]),
        (AddDiagonal((0, 0, 0), (0,), 1), [(3, 3, 3), (3,)]),
    ],
)
def test_the_definition_is_what_is_evaluated(op, shapes):
    inputs = tuple(input_node(sp.Symbol(f"x{k}"), shape) for k, shape in enumerate(shapes))
    values = [np.random.default_rng(k).normal(size=shape) for k, shape in enumerate(shapes)]
    node = Node.of(op, inputs)
    written = Graph(inputs, (definition(op, node),))
    assert written.output_nodes[0].shape == node.shape
    np.testing.assert_allclose(written(*values), evaluate(op, tuple(values)), rtol=1e-15)


def test_every_op_of_lowering_has_a_value_and_a_definition():
    """So that each pass can be tested alone: graph before = graph after."""
    for root in (symad.numeric, symad.gpu):
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            importlib.import_module(module.name)

    def rule(question, cls):
        answered = [m.signature.types[0] for m in question.generic.methods]
        kinds = [kind for kind in answered if kind in cls.__mro__]
        return min(kinds, key=cls.__mro__.index, default=Op)

    def kinds(cls):
        return {cls}.union(*map(kinds, cls.__subclasses__()))

    found = [c for c in kinds(Op) if c.__module__.startswith(("symad.numeric", "symad.gpu"))]
    assert {AddDiagonal, Cleared, Spread} <= {*found}
    for cls in found:
        if not cls.__subclasses__():
            assert rule(evaluate, cls) is not Op and rule(definition, cls) is not Op, cls

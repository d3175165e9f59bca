"""Every op's examples, split along a new axis and along their own: what is proved holds in numbers."""

import importlib
import pkgutil
from dataclasses import fields

import pytest
import sympy

import symad
from symad import ops
from symad.core.graph import DIM_FIELDS, Graph, Node, topological
from symad.errors import SymadError
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input, input_node
from symad.ops.elementwise.selection import Condition
from tests.splitting.whole_and_parts import agree, is_wrong_at_its_witness

for _module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}."):
    importlib.import_module(_module.name)

N = sympy.Symbol("n", integer=True, positive=True)


def graph_of(node):
    inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
    return Graph(inputs, (node,), None, type(node.op).__name__)


NODES = {f"{cls.__name__} {k}": n for cls, make in EXAMPLES.items() for k, n in enumerate(make())}
GRAPHS = {
    name: g
    for name, n in NODES.items()
    if (g := graph_of(n)).inputs and not g.dims and not isinstance(n.op, Condition)
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_batch_of_an_op_is_a_concatenation(name):
    graph = symad.vmap(GRAPHS[name])
    found = symad.splits(graph, {str(s): 0 for s in graph.inputs})
    assert found.status == "proved", str(found)
    assert found.rules == ("concatenation",)
    agree(found)


def with_length(graph, position, axis, fields_too):
    """The graph with the symbol n for the length of one axis; None where shapes do not allow it."""
    old = graph.input_nodes[position].shape[axis]
    shape = graph.input_nodes[position].shape
    new = (*shape[:axis], N, *shape[axis + 1 :])
    node = input_node(sympy.IndexedBase(f"x_{position}", shape=new), new)

    def changed(value):
        if isinstance(value, tuple):
            return tuple(changed(v) for v in value)
        return N if value == old and not isinstance(value, bool) else value

    def make(inner, args):
        op = inner.op
        if fields_too and not isinstance(op, Input):
            kept = {f.name: getattr(op, f.name) for f in fields(op)}
            op = type(op)(*(changed(v) if k in DIM_FIELDS else v for k, v in kept.items()))
        return Node.of(op, args)

    made = {graph.input_nodes[position]: node}
    made |= {n: n for n in graph.input_nodes if n not in made}
    new_nodes = dict(made)
    try:
        for inner in topological(graph.output_nodes):
            if inner not in new_nodes:
                new_nodes[inner] = make(inner, tuple(new_nodes[a] for a in inner.args))
    except (SymadError, TypeError, ValueError, AssertionError):
        return None
    inputs = tuple(made[n] for n in graph.input_nodes)
    return Graph(inputs, tuple(new_nodes[o] for o in graph.output_nodes), None, graph.name), node


@pytest.mark.sample(115)
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_said_of_an_axis_of_an_op_holds_in_numbers(name):
    graph = GRAPHS[name]
    for position, old in enumerate(graph.input_nodes):
        for axis in range(old.ndim):
            for fields_too in (False, True):
                made = with_length(graph, position, axis, fields_too)
                if made is not None:
                    holds_in_numbers(*made, axis)


def holds_in_numbers(graph, node, axis):
    found = symad.splits(graph, {str(node.op.symbol): axis})
    if found.status == "proved":
        agree(found)
    elif found.status == "refuted":
        assert is_wrong_at_its_witness(found)
    else:
        assert "mixes the parts" in found.entries[0].reason

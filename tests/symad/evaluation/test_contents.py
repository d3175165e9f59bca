"""What a graph contains: asked by passes, which leave a graph without such ops as it is."""

import sympy

import symad
from symad.core.contents import holds, inner_graphs, op_classes
from symad.core.graph import Graph, topological
from symad.higher_order.scan import Scan
from symad.numeric.pipelines import BLOCK_GRAPH
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Input
from symad.ops.elementwise.apply import Apply

x, y = sympy.symbols("x y")


def test_the_classes_of_a_graph_are_those_of_its_nodes():
    graph = symad.trace(sympy.sin(x) * y + x)
    assert op_classes(graph) == {type(node.op) for node in graph.nodes}
    assert holds(graph, Apply) and holds(graph, Mul) and holds(graph, Add)
    assert holds(graph, ElementwiseOp)  # a base class
    assert not holds(graph, Einsum, Scan)
    assert holds(graph, Einsum, Mul)


def test_ops_in_the_body_of_a_loop_are_those_of_its_graph():
    node = next(node for node in EXAMPLES[Scan]() if isinstance(node.op, Scan))
    inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
    graph, body = Graph(inputs, (node,)), node.op.body
    assert holds(graph, Scan) and not holds(body, Scan)
    assert op_classes(graph) == {Scan, *(type(n.op) for n in graph.nodes if n is not node)}
    assert inner_graphs(node.op) == (body,)
    assert all(inner_graphs(n.op) == () for n in graph.nodes if n is not node)


def test_passes_on_arrays_return_a_graph_of_numbers_itself():
    graph = symad.trace(x * sympy.exp(y) + 1)
    idle = [step.name for step in BLOCK_GRAPH if step.run(graph) is graph]
    assert {"seeds", "biases", "grams", "masks", "overlays"} <= set(idle)

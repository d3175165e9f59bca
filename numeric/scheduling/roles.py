"""What values are called: names by role, from how a graph came about and from what an op is.

The gradient of W is W_bar, a tangent is x_dot, the value keeps the name of its function. Inner cotangents
are found by computing the cotangents of all nodes once more: equal nodes are one node, so those that occur
in the graph are recognised. What has no role is named after its op and its arguments: P for a softmax,
cos_a for the cosine of a, QK for a product of Q and K.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from symad.core.graph import Graph, Node, Op, Origin, topological
from symad.core.questions import Word, question
from symad.numeric.passes.loops.loop import Loop, pieces
from symad.numeric.program.expressions import Expression, Index, Read
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add
from symad.ops.elementwise.powers import Pow
from symad.ops.fused.softmax import LogSoftmax, Softmax
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.solve_det import Determinant
from symad.ops.loops.scan import Scan, backwards
from symad.transforms.cotangents import cotangents

if TYPE_CHECKING:
    Stems = tuple[str, ...]
else:
    Stems = Any

MAX_NODES_FOR_COTANGENTS = 300
"""Nodes of a function up to which its cotangents are computed again for their names; readers stop before."""

MAX_STEM = 12
"""Characters of a name that is put together from others."""


@dataclass(frozen=True)
class Roles:
    """What results and cotangents are called.

    Attributes:
        labels: names of the results, flat and in order; none if they have no roles.
        value: the name of the first result where the others are its derivatives by reverse mode.
        results: names of the nodes that compute them.
        primals: for cotangents the node that they belong to.
    """

    labels: tuple[str, ...] = ()
    value: str = ""
    results: Mapping[Node, str] = field(default_factory=dict)
    primals: Mapping[Node, Node] = field(default_factory=dict)

    def after(self, prepared: Graph, passes: Callable[[Graph], Graph]) -> Roles:
        """The roles after graph passes; what is named goes through the same passes once more."""
        pairs = zip(prepared.output_nodes, self.labels, strict=False)
        results = {node: label for node, label in pairs if label and node.args}
        if not self.primals:
            return replace(self, results=results)
        named = (*self.primals, *self.primals.values())
        made = passes(Graph(prepared.input_nodes, named)).output_nodes
        count = len(self.primals)
        return replace(self, results=results, primals=dict(zip(made[:count], made[count:], strict=True)))


NO_ROLES = Roles()
"""Of what stands inside of loops."""


def roles_of(graph: Graph, inner: bool = True) -> Roles:
    """The roles in a graph, from the transformation that made it; with ``inner`` those of cotangents too."""
    if graph.origin is None:
        return NO_ROLES
    labels = tuple(label if label.isidentifier() else "value" for label in graph.origin.labels)
    value = labels[0] if graph.output_nodes[:1] == (graph.origin.value,) else ""
    return Roles(labels, value, {}, _primals(graph.origin) if inner else {})


def _primals(origin: Origin) -> dict[Node, Node]:
    """The nodes of a function, by their cotangents."""
    if origin.value is None:
        return {}
    known = set(topological([origin.value]))
    if len(known) > MAX_NODES_FOR_COTANGENTS:
        return {}
    return {bar: node for bar, node in cotangents(origin.value, origin.wrt).items() if bar not in known}


def name_of(expression: Expression | None) -> str:
    """What the value of an expression is called, or nothing."""
    if isinstance(expression, Index):
        return name_of(expression.array)
    return expression.value.stem if isinstance(expression, Read) else ""


def stem_of(node: Node, names: tuple[str, ...]) -> str:
    """A name for the value of a node, from the names of its arguments; or nothing."""
    made: str = stem(node.op, node, names)
    return made if len(made) <= MAX_STEM and made.isidentifier() else ""


@question
def stem(op: Op, node: Node, names: Stems) -> Any:
    """What a person would call the value of an op whose arguments are called ``names``, or nothing."""


@stem.dispatch
def stem_nothing(op: Op, node: Node, names: Stems) -> Word:
    """By default nothing."""
    return ""


@stem.dispatch
def stem_softmax(op: Softmax, node: Node, names: Stems) -> Word:
    """Probabilities."""
    return "P"


@stem.dispatch
def stem_log_softmax(op: LogSoftmax, node: Node, names: Stems) -> Word:
    return "log_P"


@stem.dispatch
def stem_cholesky(op: Cholesky, node: Node, names: Stems) -> Word:
    """A = L Lᵀ."""
    return "L"


@stem.dispatch
def stem_determinant(op: Determinant, node: Node, names: Stems) -> Word:
    return f"det_{names[0]}" if names[0] else "det"


@stem.dispatch
def stem_function(op: Apply, node: Node, names: Stems) -> Word:
    """cos_a, exp_x."""
    function = op.head.__name__
    return f"{function}_{names[0]}" if len(names) == 1 and names[0] else ""


@stem.dispatch
def stem_sum(op: Add, node: Node, names: Stems) -> Word:
    """ab for a + b; slope for 1 − y², the derivative of y = tanh x."""
    if set(op.signs) == {1} and all(0 < len(name) <= 2 for name in names):
        return "".join(names)
    if op.signs == (1, -1) and constant_value(node.args[0]) == 1 and isinstance(node.args[1].op, Pow):
        return "slope"
    return ""


@stem.dispatch
def stem_loop(op: Loop, node: Node, names: Stems) -> Word:
    """h for states, h_bar where time runs backwards; other values: their function, or a, a_bar."""
    states, xs, _ = pieces(op, node.args)
    turned = any(x.args and backwards(x) is x.args[0] for x in xs)
    if op.k < len(states):
        return "h_bar" if turned else "h"
    result = op.body.output_nodes[op.k].op
    return result.head.__name__ if isinstance(result, Apply) else "a_bar" if turned else "a"


@stem.dispatch
def stem_scan(op: Scan, node: Node, names: Stems) -> Word:
    """h for states, h_bar where time runs backwards."""
    return "h_bar" if any(x.args and backwards(x) is x.args[0] for x in pieces(op, node.args)[1]) else "h"


@stem.dispatch
def stem_product(op: Einsum, node: Node, names: Stems) -> Word:
    """QK for a product of Q and K."""
    return "".join(names) if len(names) == 2 and all(0 < len(name) <= 2 for name in names) else ""

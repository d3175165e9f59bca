"""The names of values: by their role in the derivatives of a graph, or by their op.

The gradient of W is W_bar, a tangent is x_dot, and the value has the name of its function. To find inner
cotangents, the cotangents of all nodes are computed once more: equal nodes are one object, so that cotangents
in the graph are recognized. Other values are named after their op and arguments: P for a softmax, cos_a for
the cosine of a, QK for a product of Q and K. A variable of the traced function that holds the value
comes before all of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from symad.core.following import following
from symad.core.graph import Graph, Node, Op, Origin, topological
from symad.core.questions import question
from symad.higher_order.scan import LoopOp, Scan, backwards
from symad.numeric.passes.bodies import LoopValue, pieces
from symad.numeric.program.expressions import Expression, Index, Read
from symad.ops.arrays.softmax import LogSoftmax, Softmax
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.solve_det import Determinant
from symad.transforms.cotangents import cotangents

if TYPE_CHECKING:
    Stems = tuple[str, ...]
else:
    Stems = Any

MAX_NODES_FOR_COTANGENTS = 300
"""Nodes of a function up to which its cotangents are computed again to name them.

Origin: it bounds the time of set-up.
"""

MAX_STEM_CHARACTERS = 12
"""Characters of a name stem that is composed of others. This keeps lines short.

Origin: it bounds the length of a line.
"""


@dataclass(frozen=True)
class Roles:
    """The names of results, of cotangents and of the values that variables of the traced function hold.

    Attributes:
        labels: the names of the flat results, in order; empty if they have no roles.
        value: the name of the first result, if the others are its derivatives by reverse mode.
        results: the names of the nodes that compute the results.
        primals: for each cotangent of the function the node whose cotangent it is.
        variables: the names of nodes that variables of the traced function hold.
        bodies: the same for the bodies of its loops, by the first output of each and by the parts of that.
        originals: for each node that stands for a node of the function after graph passes, the latter.
    """

    labels: tuple[str, ...] = ()
    value: str = ""
    results: Mapping[Node, str] = field(default_factory=dict)
    primals: Mapping[Node, Node] = field(default_factory=dict)
    variables: Mapping[Node, str] = field(default_factory=dict)
    bodies: Mapping[Node, Mapping[Node, str]] = field(default_factory=dict)
    originals: Mapping[Node, Node] = field(default_factory=dict)

    @contextmanager
    def followed(self) -> Iterator[Roles]:
        """A context for graph passes; the roles that it yields have names for the nodes which these make."""
        inside = (node for scope, names in self.bodies.items() for node in (scope, *names))
        with following((*self.variables, *inside, *self.primals, *self.primals.values())) as originals:
            yield replace(self, originals=originals)

    def of_results(self, prepared: Graph) -> Roles:
        """The roles in a graph after all passes."""
        pairs = zip(prepared.output_nodes, self.labels, strict=False)
        return replace(self, results={node: label for node, label in pairs if label and node.args})

    def inside(self, first: Node) -> Roles:
        """The roles in the body of a loop, given its first output."""
        names = self.bodies.get(self.originals.get(first, first), {})
        return Roles(variables=names, bodies=self.bodies, originals=self.originals)

    def of_loop(self, op: LoopOp) -> str:
        """The name of the variable that holds a state or value of a loop inside its step; may be empty."""
        inside, (states, _, _) = self.inside(op.body.output_nodes[0]), pieces(op, op.body.input_nodes)
        k = op.k if isinstance(op, LoopValue) else 0
        before = inside.variable(states[k]) if k < len(states) else ""
        return before or inside.variable(op.body.output_nodes[k])

    def variable(self, node: Node) -> str:
        """The name of the variable that holds a node; empty if there is none."""
        return self.variables.get(self.originals.get(node, node), "")

    def primals_of(self, node: Node) -> list[Node]:
        """The nodes of which one has the cotangent ``node``; they stand for the same value."""
        primal = self.primals.get(self.originals.get(node, node))
        return [made for made, original in self.originals.items() if original is primal] if primal else []


NO_ROLES = Roles()
"""The roles of graphs without a known origin."""


def roles_of(graph: Graph, inner: bool = True) -> Roles:
    """The roles in a graph, by the transformation that made it; if ``inner``, also of inner cotangents."""
    scopes: dict[Node | None, dict[Node, str]] = {None: {}}
    for scope, node, name in graph.variables:
        scopes.setdefault(scope, {})[node] = name
    variables = scopes.pop(None)
    bodies: dict[Node, dict[Node, str]] = {}
    for first, names in scopes.items():  # a pass may split the state: its parts become the outputs
        bodies |= {node: names for node in (first, *first.args)} if first is not None else {}
    if graph.origin is None:
        return Roles(variables=variables, bodies=bodies)
    labels = tuple(label if label.isidentifier() else "value" for label in graph.origin.labels)
    value = labels[0] if graph.output_nodes[:1] == (graph.origin.value,) else ""
    return Roles(labels, value, {}, _primals(graph.origin) if inner else {}, variables, bodies)


def _primals(origin: Origin) -> dict[Node, Node]:
    """The nodes of a function by their cotangents; empty if the function has too many."""
    if origin.value is None:
        return {}
    known = set(topological([origin.value]))
    if len(known) > MAX_NODES_FOR_COTANGENTS:
        return {}
    return {bar: node for bar, node in cotangents(origin.value, origin.wrt).items() if bar not in known}


def name_of(expression: Expression | None) -> str:
    """The name stem of a value or of a view of it; empty for other expressions."""
    while isinstance(expression, Index):
        expression = expression.array
    return expression.value.stem if isinstance(expression, Read) else ""


def stem_of(node: Node, names: tuple[str, ...]) -> str:
    """A name stem for a node, from the name stems of its arguments; may be empty."""
    made: str = stem(node.op, node, names)
    return made if made and len(made) <= MAX_STEM_CHARACTERS and made.isidentifier() else ""


@question
def stem(op: Op, node: Node, names: Stems) -> Any:
    """The usual name for the value of an op with arguments called ``names``; may be empty."""


@stem.dispatch
def stem_nothing(op: Op, node: Node, names: Stems) -> str:
    """By default, an op gives no name."""
    return ""


LETTERS: dict[type[Op], str] = {Softmax: "P", LogSoftmax: "log_P", Cholesky: "L"}
"""P, the probabilities, and L, of A = L Lᵀ."""


@stem.dispatch
def stem_letter(op: Softmax | LogSoftmax | Cholesky, node: Node, names: Stems) -> str:
    return LETTERS[type(op)]


@stem.dispatch
def stem_determinant(op: Determinant, node: Node, names: Stems) -> str:
    return f"det_{names[0]}" if names[0] else "det"


@stem.dispatch
def stem_function(op: Apply, node: Node, names: Stems) -> str:
    """cos_a, exp_x."""
    function = op.head.__name__
    return f"{function}_{names[0]}" if len(names) == 1 and names[0] else ""


@stem.dispatch
def stem_sum(op: Add, node: Node, names: Stems) -> str:
    """ab for a + b; slope for 1 − y², the derivative of y = tanh x."""
    if set(op.signs) == {1} and all(0 < len(name) <= 2 for name in names):
        return "".join(names)
    if op.signs == (1, -1) and constant_value(node.args[0]) == 1 and isinstance(node.args[1].op, Pow):
        return "slope"
    return ""


@stem.dispatch
def stem_loop(op: LoopValue, node: Node, names: Stems) -> str:
    """h for states, h_bar in backward loops; other values have the name of their function, or a, a_bar."""
    states, xs, _ = pieces(op, node.args)
    turned = any(x.args and backwards(x) is x.args[0] for x in xs)
    if op.k < len(states):
        return "h_bar" if turned else "h"
    result = op.body.output_nodes[op.k].op
    return result.head.__name__ if isinstance(result, Apply) else "a_bar" if turned else "a"


@stem.dispatch
def stem_scan(op: Scan, node: Node, names: Stems) -> str:
    """h for states, h_bar in backward loops."""
    return "h_bar" if any(x.args and backwards(x) is x.args[0] for x in pieces(op, node.args)[1]) else "h"


@stem.dispatch
def stem_product(op: Einsum, node: Node, names: Stems) -> str:
    """QK for a product of Q and K."""
    return "".join(names) if len(names) == 2 and all(0 < len(name) <= 2 for name in names) else ""

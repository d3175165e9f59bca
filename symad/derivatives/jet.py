"""Taylor mode: derivatives of order 0, 1, ..., k along a line, without k nested pushforwards.

With x(t) = x + t v every value y of a graph is a power series y_0 + y_1 t + y_2 t² + ..., and y_j j! is the
directional derivative Dʲf(x)[v, ..., v]. A product is Cauchy's, y_k = Σ_j a_j b_{k−j}; a quotient, a root
and a linear solve are the same sums solved for y_k. All other ops use their pushforward: ẏ =
∂op(x, y) ẋ is a graph in x, y and ẋ, so that y_k = (ẏ)_{k−1}/k needs lower orders only. Functions whose
derivatives are expressed by themselves (exp, sin and cos, tanh, ...) cost O(k²) nodes in all, whereas nested
pushforwards double the number of nodes with each order.

Sources: Griewank & Walther, "Evaluating Derivatives" (2008), section 13.2 and table 13.2; Bettencourt,
Johnson & Duvenaud, "Taylor-mode automatic differentiation for higher-order derivatives in JAX" (2019).
"""

from __future__ import annotations

from math import factorial

from symad.core.graph import ZERO, Graph, Origin, TupleOf
from symad.core.identifiers import brief
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.errors import DerivativeError
from symad.higher_order import series as _rules  # noqa: F401  (registers answers)
from symad.stable import smooth
from symad.tracing import as_graph
from symad.tracing.wrt import (
    differentiated,
    input_names,
    packing_of,
    tangent_inputs,
    value_labels,
    value_part,
    with_directions,
)
from symad.transforms.series import Coefficients, _scaled
from symad.transforms.tangents import dense

MAX_ORDER = 1000
"""Coefficients of a jet. Work and code grow with the square of the order."""


@without_collecting
def jet(f: Traceable, order: int, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """Directional derivatives up to an order: (x..., x_dot...) -> (y, Df[x_dot], D²f[x_dot, x_dot], ...).

    They are the derivatives of t ↦ f(x + t x_dot) at t = 0: order + 1 values, each in the shapes and the
    structure of ``f``. ``wrt`` and ``inputs`` as in `pushforward`. Loops stay loops, whose state is extended
    by its coefficients; the coefficients of solutions of `implicit` come from linear solves.

    Returns:
        A graph with the arguments of ``f``, then one direction for each entry of ``wrt``; it gives a tuple.

    Raises:
        DerivativeError: the order is not an integer, is negative, or is larger than `MAX_ORDER`.

    Example:
        >>> import sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> symad.jet(x**3, 2)(2, 1)
        (8, 12, 12)
    """
    if not isinstance(order, int) or isinstance(order, bool) or not 0 <= order <= MAX_ORDER:
        raise DerivativeError(f"jet: the order {brief(order)} is not an integer from 0 to {MAX_ORDER:,}")
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    dots = tangent_inputs(nodes, "dot", input_names(graph))
    outputs, _ = smooth(graph.output_nodes, dict(zip(nodes, dots, strict=True)))
    given = {x: (v, *[ZERO] * (order - 1)) for x, v in zip(nodes, dots, strict=True)} if order else {}
    found = Coefficients(order, given)
    found.compute((y, k) for y in outputs for k in range(1, order + 1))
    made = list(graph.output_nodes)
    for k in range(1, order + 1):
        made += [dense(_scaled(factorial(k), found(y, k)), y) for y in outputs]
    values = value_labels(graph)
    labels = [f"{name}_{k}" if k else name for k in range(order + 1) for name in values]
    structure, name = TupleOf((graph.structure,) * (order + 1)), f"{graph.name}_jet"
    packing = packing_of(graph, selection, (value_part(graph),) * (order + 1), len(dots))
    origin = Origin(tuple(labels))
    return with_directions(graph, dots, selection, "dot", tuple(made), structure, name, origin, "", packing)

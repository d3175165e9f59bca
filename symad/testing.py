"""Checks for test suites: of derivatives, and of the rules of ops added to symad.

Plain functions that raise AssertionError; they need no plugin. All comparisons are certificates of
`symad.verification`, or exact in rational numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import sympy
from plum import NotFoundLookupError

from symad.core.arrays import Array, Number
from symad.core.graph import Graph, Node, Op, TupleOf
from symad.core.questions import definition
from symad.core.signatures import Traceable, Wrt
from symad.derivatives.hessian import MODES, hessian_node
from symad.display.grades import Grade, grade
from symad.errors import SymadError
from symad.numbers.dual import Dual
from symad.numbers.number_domains import UndefinedValue
from symad.numbers.values import unchecked
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.contraction import inner, permute, sum_all
from symad.ops.basic.sources import input_node, inputs_in
from symad.tracing.wrt import tangent_inputs
from symad.transforms.cotangents import pull
from symad.transforms.jacobians import forward_jacobian, reverse_jacobian
from symad.transforms.tangents import dense, push
from symad.verification import Budget, Certificate, verify
from symad.verification.certificate.certificate import Comparison
from symad.verification.decide import decide
from symad.verification.rewriting.rewrite import expand_definitions

__all__ = [
    "Grade",
    "assert_derivative",
    "assert_dot_product",
    "assert_dual",
    "check_rule",
    "grade",
]


def __dir__() -> list[str]:
    """The public names, without the imports of this module."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def assert_derivative(
    f: Traceable, wrt: Wrt | None = None, *, level: str = "measured", **candidate: sympy.Expr
) -> Certificate:
    """Assert that a formula or numeric function for ``f`` or a derivative of it is correct.

    Args:
        f: what `trace` takes.
        wrt: inputs, all by default.
        level: "proved" demands a proof, "tested" at least an identity test; "measured" also accepts numbers
            that agree at every point that was tried; a numeric function can reach no better level.
        candidate: one of ``value=``, ``gradient=``, ``jacobian=``, ``hessian=``, and options, as for
            `symad.verify`; with ``hostile=False`` numeric code is tested for correctness, not for stability.

    Returns:
        The certificate.

    Raises:
        ValueError: ``level`` is not one of these.
        AssertionError: it is refuted or undecided, or not proved if a proof is demanded; the message is
            the certificate.

    Example:
        >>> import numpy as np, sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> _ = symad.testing.assert_derivative(sympy.sin(x), gradient=np.cos)
    """
    levels = ("measured", "tested", "proved")
    if level not in levels:
        raise ValueError(f'assert_derivative: level is "proved", "tested" or "measured", not {level!r}')
    certificate = verify(f, wrt, **candidate)
    if certificate.status not in levels[levels.index(level) :]:
        raise AssertionError(str(certificate))
    return certificate


def check_rule(op: Op | Node | type[Op], budget: Budget | None = None) -> Certificate:
    """Check the derivative rules of an op on its examples, or those of one node.

    The following have to agree, entry by entry: the value and the value of the definition, if there is one;
    the Jacobian in forward mode (`jvp`) and in reverse mode (`transpose`), and that of the definition;
    the four Hessians of Σ y² and their transposes. The dot-product identity and Dual numbers are checked
    exactly, in rationals, if the op has rational values.

    Args:
        op: an op class with examples, an op of such a class, or a node on input nodes.
        budget: limits of time and size.

    Returns:
        A certificate that is proved or tested.

    Raises:
        AssertionError: two of them disagree, or could not be decided; the message says which.

    Example:
        >>> import symad
        >>> from symad.ops.basic.shaping import Reshape
        >>> symad.testing.check_rule(Reshape).status
        'proved'
    """
    nodes = [op] if isinstance(op, Node) else EXAMPLES[op if isinstance(op, type) else type(op)]()
    comparisons: list[Comparison] = []
    for k, node in enumerate(nodes):
        graph = _graph_of(node)
        if not graph.input_nodes:
            continue
        try:
            comparisons.extend(_rule_comparisons(graph, f"{type(node.op).__name__} example {k}"))
        except NotFoundLookupError as problem:
            name, question = type(node.op).__name__, str(problem).split("(")[0].strip(" `")
            raise AssertionError(f"{name} does not answer {question}") from problem
        assert_dot_product(graph)
        assert_dual(graph)
    name = type(nodes[0].op).__name__
    certificate = decide(f"rules of {name}", comparisons, seed=0, budget=budget)
    if comparisons and not certificate:
        raise AssertionError(str(certificate))
    return certificate



def _graph_of(node: Node) -> Graph:
    """A node as a graph of its inputs, with numbers for symbolic sizes."""
    inputs = tuple(inputs_in([node]))
    graph = Graph(inputs, (node,))
    return graph.at({symbol: 3 for symbol in graph.dims})


def _rule_comparisons(graph: Graph, title: str) -> list[Comparison]:
    (y,), wrt = graph.output_nodes, graph.input_nodes
    forward, reverse = forward_jacobian([y], wrt), reverse_jacobian([y], wrt)
    found = [_comparison(graph, f"{title}: jvp and transpose", forward, reverse)]
    if definition(y.op, y) is not None:
        (plain,) = expand_definitions([y])
        found.append(_comparison(graph, f"{title}: value and definition", plain, y))
        found.append(
            _comparison(graph, f"{title}: jvp and definition", forward_jacobian([plain], wrt), forward)
        )
    scalar = sum_all(mul(y, y)) if y.shape else mul(y, y)
    matrices = [hessian_node(scalar, wrt, mode) for mode in MODES]
    for mode, matrix in zip(MODES[1:], matrices[1:], strict=True):
        found.append(_comparison(graph, f"{title}: Hessian {MODES[0]} and {mode}", matrices[0], matrix))
    found.append(
        _comparison(graph, f"{title}: Hessian and its transpose", matrices[0], permute(matrices[0], (1, 0)))
    )
    return found


def _comparison(graph: Graph, title: str, left: Node, right: Node) -> Comparison:
    one = TupleOf((None,))
    first, _, second = title.partition(" and ")
    sides = (graph.with_outputs((node,), one) for node in (left, right))
    return Comparison(
        title, next(sides), (title,), right=next(sides), left_name=first, right_name=second or "the other"
    )


# ---- exact checks in rationals -------------------------------------------------------------------


def assert_dot_product(f: Graph, wrt: Sequence[Node] | None = None, points: int = 2, seed: int = 0) -> None:
    """Assert ⟨w, J v⟩ = ⟨Jᵀ w, v⟩ exactly, in rationals, at random points and directions.

    Points at which a value is not rational are left out; a graph that has none is not checked.

    Raises:
        AssertionError: the two numbers differ; the message has both.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.testing.assert_dot_product(symad.trace(x**2 * y))
    """
    nodes = tuple(f.input_nodes if wrt is None else wrt)
    directions = tangent_inputs(nodes, "v", {str(s) for s in f.inputs})
    weights = tuple(input_node(_weight_symbol(k, y), y.shape) for k, y in enumerate(f.output_nodes))
    pushed = [
        dense(t, y)
        for t, y in zip(
            push(f.output_nodes, dict(zip(nodes, directions, strict=True))), f.output_nodes, strict=True
        )
    ]
    pulled = [dense(t, x) for t, x in zip(pull(f.output_nodes, weights, nodes), nodes, strict=True)]
    left = add(*[_inner(w, t) for w, t in zip(weights, pushed, strict=True)])
    right = add(*[_inner(t, v) for t, v in zip(pulled, directions, strict=True)])
    rng = Random(seed)
    for _ in range(points):
        point = {n: _rationals(n, rng) for n in (*f.input_nodes, *directions, *weights)}
        try:
            a, b = unchecked([left, right], point)
        except (SymadError, ArithmeticError, ValueError, TypeError):
            continue
        if _is_exact(a) and _is_exact(b) and a != b:
            raise AssertionError(f"⟨w, J v⟩ = {a}, but ⟨Jᵀ w, v⟩ = {b}, at {_described(point)}")


def _weight_symbol(k: int, y: Node) -> sympy.Symbol:
    from symad.tracing.wrt import symbol_like

    return symbol_like(f"w_{k}", y.shape, set())


def _inner(a: Node, b: Node) -> Node:
    return inner(a, b) if a.shape else mul(a, b)


def _rationals(node: Node, rng: Random) -> Any:
    """Random rationals in the shape of an input, perfect squares so that roots stay rational."""
    shape = tuple(int(d) for d in node.shape)
    numbers = np.empty(int(np.prod(shape)), dtype=object)
    numbers[:] = [Fraction(rng.randrange(1, 12), rng.randrange(1, 6)) ** 2 for _ in range(len(numbers))]
    return numbers.reshape(shape) if shape else numbers[0]


def _described(point: Mapping[Node, Number]) -> str:
    from symad.verification.certificate.witness import describe

    return ", ".join(f"{k} = {v}" for k, v in describe(point).items()).replace("'", "")


def assert_dual(f: Graph, points: int = 1, seed: int = 0) -> None:
    """Assert that forward mode and Dual numbers agree exactly, in rationals, in a random direction.

    Points at which a value is not rational are left out; a graph that has none is not checked.

    Raises:
        AssertionError: a tangent differs.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.testing.assert_dual(symad.trace(x**2 * y))
    """
    nodes = f.input_nodes
    directions = tangent_inputs(nodes, "v", {str(s) for s in f.inputs})
    pushed = push(f.output_nodes, dict(zip(nodes, directions, strict=True)))
    tangents = [dense(t, y) for t, y in zip(pushed, f.output_nodes, strict=True)]
    rng = Random(seed)
    for _ in range(points):
        values = {n: _rationals(n, rng) for n in (*nodes, *directions)}
        duals = {x: _dual(values[x], values[v]) for x, v in zip(nodes, directions, strict=True)}
        try:
            expected = unchecked(tangents, values)
            found = unchecked(f.output_nodes, duals)
        except (SymadError, ArithmeticError, ValueError, TypeError):
            continue
        for a, b in zip(expected, found, strict=True):
            _assert_same_tangents(np.asarray(a, dtype=object), np.asarray(b, dtype=object), values)


def _dual(value: Any, tangent: Any) -> Number:
    return (
        np.frompyfunc(Dual, 2, 1)(value, tangent) if isinstance(value, np.ndarray) else Dual(value, tangent)
    )


def _is_exact(value: object) -> bool:
    """True if a value is rational; floats come from iterative solvers."""
    return isinstance(value, (int, Fraction))


def _assert_same_tangents(expected: Array, found: Array, values: Mapping[Node, Number]) -> None:
    for index in np.ndindex(expected.shape):
        a, dual = expected[index], found[index]
        if isinstance(dual, UndefinedValue):
            continue
        b = dual.tangent if isinstance(dual, Dual) else 0
        if _is_exact(a) and _is_exact(b) and a != b:
            raise AssertionError(f"forward mode gives {a}, Dual numbers {b}, at {_described(values)}")

"""`error_bound`: from a function and a box to bounds of the rounding errors of its printed code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import sympy

from symad.core.graph import Graph, Node, rebuild
from symad.core.identifiers import not_one_of, short_name
from symad.core.signatures import Inputs, Traceable
from symad.errors import LoweringError
from symad.numeric.box import GivenBox, read_box
from symad.numeric.kernel import Kernel
from symad.numeric.modules.module_text import Names
from symad.numeric.numpy_arrays.scalars.numpy_runs import scalar_program
from symad.numeric.passes.algebra.definitions import write_definitions
from symad.numeric.passes.memory_layout.packed_entries import Pack, is_scalar, is_straight
from symad.numeric.passes.ranges import in_range, norms
from symad.numeric.pipelines import ARRAY_GRAPH, SCALAR_GRAPH, run_graph_passes
from symad.numeric.plain import plain_program
from symad.numeric.program.program import Program
from symad.numeric.scheduling.roles import roles_of
from symad.numeric.stability.bound import Analysis, Bounded, Box, search
from symad.numeric.stability.roundings import PRECISIONS, RoundedProgram, Rounding, rounded_results
from symad.numeric.targets.scalar_module import BINDINGS, BodyWriter
from symad.numeric.targets.statements import lines_of
from symad.numeric.targets.target import NUMPY
from symad.numeric.targets.writer import Writer
from symad.ops.basic.shaping import broadcast_to, reshape, slice_axis
from symad.ops.basic.sources import constant, symbol_of
from symad.tracing import as_graph
from symad.verification import Budget, equal

BOXES = 2500
"""The largest number of boxes that a search looks at by default."""

BUDGET = Budget(steps=1_000_000)
"""What a proof that two branches agree may cost: about a second."""

WORK = 60_000
"""By default the search looks at fewer boxes of long programs: boxes times operations are at most this."""

LEAST_BOXES = 60
"""The number of boxes for the longest programs."""

SHOWN = 5
"""The number of statements that are printed with a bound."""


@dataclass(frozen=True)
class Contribution:
    """What the roundings of one statement contribute to an absolute bound."""

    statement: str
    error: float


@dataclass(frozen=True, repr=False)
class ErrorBound:
    """Bounds of the rounding error of one number that printed code computes.

    Attributes:
        absolute: |computed − exact| is at most this, at every point of the box; infinite where it may be
            anything as far as is known.
        relative: |computed − exact|/|exact| is at most this; infinite where the exact result may be 0.
        statements: the printed statements, those that contribute most to the absolute bound first.
        reason: the statement that has no bound, and why; empty where there is one.
        dtype: the type in which the code computes.
    """

    absolute: float
    relative: float
    statements: tuple[Contribution, ...]
    reason: str = ""
    dtype: str = "float64"

    @property
    def digits(self) -> float:
        """How many decimal digits of the result are right at least."""
        return math.inf if self.relative == 0 else max(0.0, -math.log10(self.relative))

    def __repr__(self) -> str:
        if self.reason:
            return f"<no bound: {self.reason}>"
        return f"<absolute error <= {self.absolute:.3g}, {self._relative}, in {self.dtype}>"

    def __str__(self) -> str:
        if self.reason:
            return f"no bound: {self.reason}"
        head = f"absolute error <= {self.absolute:.3g}, {self._relative}, in {self.dtype}"
        lines = [f"{each.error:10.3g}  {each.statement}" for each in self.statements[:SHOWN] if each.error]
        return "\n".join([head, *lines])

    @property
    def _relative(self) -> str:
        if math.isfinite(self.relative):
            return f"relative <= {self.relative:.3g} ({self.digits:.1f} digits are right)"
        return "relative without a bound: the result may be 0"


def error_bound(
    f: Traceable,
    box: GivenBox,
    dtype: str = "float64",
    inputs: Inputs | None = None,
    round_inputs: bool = False,
    batch: bool = False,
    boxes: int | None = None,
) -> ErrorBound | tuple[ErrorBound, ...]:
    """A proved bound of the rounding errors of the code that is printed for ``f``, for all inputs in a box.

    The computed result is the exact one with a relative error of at most ½ulp in each operation, and of the
    documented errors in each function (`math` at a point: 1 or 2 ulp; NumPy's functions of arrays: 4). The
    bound is that of the sum of their effects, Σ_n |∂y/∂δ_n| |δ_n|, at the worst point of the box. Scalar
    functions are bounded as straight-line code, which `symad.numeric.lower` prints up to about 300
    operations; functions of arrays in ``style="plain"``, with sums and products in any order of their terms.
    What is bounded is the printed form. Near a removable cancellation it may be a polynomial, which is
    within 2⁻⁵⁵ of the function's value; this difference is not counted.

    Args:
        f: a function, in any form that `symad.trace` takes, without loops.
        box: for each input (its symbol or its name) the smallest and the largest value, or one number. For
            an array they hold for every element.
        dtype: "float64" or "float32", the type in which the code computes.
        inputs: order and shapes of the arguments, as in `symad.trace`.
        round_inputs: whether the inputs are real numbers that are rounded first; otherwise they are numbers
            of the type.
        batch: whether a scalar function is called with arrays of points, which NumPy's functions evaluate.
        boxes: the search looks at so many boxes; more give a bound that is closer, never one that is wrong.
            By default 2,500, and fewer for programs of many operations: a bound then takes seconds.

    Returns:
        A bound, or one for each number that ``f`` returns, in order.

    Raises:
        LoweringError: an input without bounds or an unknown one, an empty box, one outside of what the
            symbol assumes; a loop, or a function whose error is not documented.

    Example:
        >>> import sympy, symad
        >>> x = sympy.Symbol("x", positive=True)
        >>> bound = symad.error_bound(sympy.sqrt(x + 1) - sympy.sqrt(x), {x: (1, 1e6)})
        >>> bound.relative < 1e-15
        True

    Source: Higham, Accuracy and Stability of Numerical Algorithms (2002), sections 2.2 and 3.1.
    """
    if dtype not in PRECISIONS:
        raise LoweringError(not_one_of("dtype", dtype, tuple(PRECISIONS)))
    if isinstance(f, Kernel):
        raise LoweringError("error_bound takes the function, not the code that was made of it")
    graph = as_graph(f, None, inputs)
    sides = _sides(graph, box)
    program, arrays = _program(write_definitions(graph), dtype)
    made = RoundedProgram(PRECISIONS[dtype], arrays or batch or dtype != "float64", frozenset(graph.nodes))
    made.statement = len(program.statements) + 1
    nodes = graph.input_nodes
    given = [made.round(n) if round_inputs else n for n in nodes]
    results = [number for r in rounded_results(program, given, made) for number in _numbers(r)]
    texts = _texts(program, arrays, dtype)
    agree = _agreement(graph, made.roundings)
    analyses = [Analysis(r, nodes, made.roundings, made.precision, agree) for r in results]
    found = tuple(_bounded(each, sides, boxes, texts, dtype) for each in analyses)
    return found[0] if graph.structure is None and not graph.output_nodes[0].shape else found


def _program(graph: Graph, dtype: str) -> tuple[Program, bool]:
    """The program that is printed, and whether it is one of arrays."""
    with roles_of(graph, inner=False).followed() as roles:
        prepared = graph if is_straight(graph) else run_graph_passes(graph, ARRAY_GRAPH)
        if is_straight(graph) or is_scalar(prepared):
            made = run_graph_passes(prepared, (*SCALAR_GRAPH, *norms(dtype), *in_range(dtype)))
            return scalar_program(made, roles), False
    return plain_program(graph, None, dtype), True


def _sides(graph: Graph, box: GivenBox) -> Box:
    """The bounds of every element of the inputs.

    Raises:
        LoweringError: see `error_bound`.
    """
    sides, made = read_box(graph, box), list[tuple[float, float]]()
    for node in graph.input_nodes:
        name = short_name(symbol_of(node))
        if node not in sides:
            raise LoweringError(f"the box lacks {name}: give {{{name}: (smallest, largest)}}")
        low, high = sides[node]
        if not (math.isfinite(low) and math.isfinite(high)):
            raise LoweringError(f"the box of {name} from {low!r} to {high!r} is infinite")
        if not all(isinstance(d, (int, sympy.Integer)) for d in node.shape):
            raise LoweringError(f"error_bound needs sizes: {name} has the shape {node.shape}; give inputs=")
        made += [(low, high)] * math.prod(int(d) for d in node.shape)
    return tuple(made)


def _numbers(result: Node) -> list[Node]:
    """The numbers in a result."""
    if isinstance(result.op, Pack):
        return list(result.args)
    flat = reshape(result, (math.prod(int(d) for d in result.shape),))
    return (
        [reshape(slice_axis(flat, 0, k, 1), ()) for k in range(int(flat.shape[0]))]
        if result.shape
        else [result]
    )


def _texts(program: Program, arrays: bool, dtype: str) -> list[str]:
    """The lines of each statement, that of the results, and what stands for inputs."""
    writer = Writer(NUMPY, dtype, Names()) if arrays else BodyWriter(Names(BINDINGS), (0,))
    for value in program.inputs:
        writer.name(value)
    texts = ["; ".join(filter(None, lines_of((s,), writer))) for s in program.statements]
    returned = ", ".join(writer.text(result).text for result in program.results)
    return [*texts, f"return {returned}", "the inputs, rounded"]


def _agreement(graph: Graph, roundings: Sequence[Rounding]) -> Callable[[Node, Node], bool]:
    """Whether two branches are the same function of the inputs, which is proved.

    A stable form is one of several that are equal as real functions. Which one is computed does not matter.
    """
    exact = {r.delta: broadcast_to(constant(0), r.delta.shape) for r in roundings}

    @cache
    def agree(a: Node, b: Node) -> bool:
        sides = [graph.with_outputs((node,), None, "branch") for node in rebuild((a, b), exact)]
        return equal(sides[0], sides[1], seed=0, budget=BUDGET).status == "proved"

    return agree


def _bounded(analysis: Analysis, sides: Box, boxes: int | None, texts: list[str], dtype: str) -> ErrorBound:
    """The bounds of one number."""
    boxes = boxes or min(BOXES, max(LEAST_BOXES, WORK // len(analysis.order)))
    worst = search(analysis, sides, "absolute", boxes)
    if not math.isfinite(worst.absolute):
        return ErrorBound(math.inf, math.inf, (), _reason(analysis, worst, texts), dtype)
    relative = search(analysis, sides, "relative", boxes).relative
    errors = [0.0] * len(texts)
    for rounding, part in zip(analysis.roundings, worst.parts, strict=True):
        errors[rounding.statement] += part
    ranked = sorted(range(len(texts)), key=lambda k: -errors[k])
    statements = tuple(Contribution(texts[k], errors[k]) for k in ranked)
    return ErrorBound(worst.absolute, relative, statements, "", dtype)


def _reason(analysis: Analysis, worst: Bounded, texts: list[str]) -> str:
    """Why there is no bound."""
    if worst.lost < 0:
        return "a derivative is unbounded in the box"
    statement = texts[analysis.roundings[worst.lost].statement]
    return (
        f"the value of {statement!r}, or its slope, may be infinite or not exist in a part of the box: "
        "a smaller box, or smaller parts by a larger boxes=, may have a bound"
    )

"""The functions that ops call become `DefineFunction` statements.

`Remat` is one call. A loop with a memory policy calls the function of one step, and its pullback the function
that pulls back through a segment of some steps. An implicit function calls the residual and its derivative.
The values of functions are freed when the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count

import sympy

from symad.core.dims import dim_symbols
from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.derivatives.implicit import Root, residual_at, slope_at, sparse_slope
from symad.higher_order.checkpointed_chain import ChainOp, Kept
from symad.higher_order.checkpointed_chain_pullback import ChainPullback, stretch_pullback
from symad.higher_order.remat import Fallback, Remat
from symad.higher_order.scan import Local
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.numeric.program.loops import DefineFunction, Fixed
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Assign, Statement
from symad.numeric.program.uses import lifetimes
from symad.numeric.program_passes.loops.open_loops import MakesBody
from symad.numeric.program_passes.memory.allocation import shown

CALLING = (Remat, Fallback, Kept, Root, ChainPullback)
"""The ops that call functions."""


@dataclass(frozen=True)
class Inner:
    """A function that an op calls: a graph some of whose inputs are parameters, the others fixed.

    ``prepared``: whether the graph passes run on it. ``stems``: the name stems of parameters.
    """

    stem: str
    graph: Graph
    parameters: Nodes
    fixed: Mapping[Node, Expression]
    steps: sympy.Symbol | None = None
    repeated: bool = True
    prepared: bool = True
    stems: Mapping[Node, str] = field(default_factory=dict)


def open_functions(
    program: Program, body: MakesBody, prepared: Callable[[Graph], Graph], sparse: bool
) -> Program:
    """The program with the functions that its ops call, each before the statement that calls it.

    Args:
        program: a program.
        body: makes the program of a function.
        prepared: the graph of a function after the graph passes of the program's own graph.
        sparse: whether the derivatives of implicit functions may be sparse matrices.
    """
    ordered: list[Statement] = []
    for statement in program.statements:
        found = statement.expression if isinstance(statement, Assign) else None
        inner = inner_functions(found, sparse) if isinstance(found, Compute) else ()
        made = [_function(one, body, prepared) for one in inner]
        ordered += made
        if made and isinstance(statement, Assign) and isinstance(found, Compute):
            called = replace(found, functions=tuple(function.value for function in made))
            statement = replace(statement, expression=called)
        ordered.append(statement)
    return program.with_statements(tuple(ordered))


def inner_functions(found: Compute, sparse: bool) -> tuple[Inner, ...]:
    """The functions that an op calls; none for most ops."""
    op = found.op
    if isinstance(op, (Remat, Fallback)):
        return (Inner("part", op.body, op.body.input_nodes, {}, repeated=False),)
    if isinstance(op, Kept):
        return (_step(op, found),)
    if isinstance(op, Root):
        return (_equations(op, found, sparse),) if op.solver is None else ()
    return (_step(op, found), _pull(op, found)) if isinstance(op, ChainPullback) else ()


def _equations(op: Root, found: Compute, sparse: bool) -> Inner:
    """The residual and its derivative, from the unknowns and the parameters of one problem of a batch."""
    local = op.residual.input_nodes
    slope = sparse_slope(op.residual) if sparse else None
    slope = slope_at(op, local[0], local[1:]) if slope is None else slope
    graph = Graph(local, (residual_at(op, local[0], local[1:]), slope))
    moving = {local[k]: f"p{k}" for k, batched in enumerate(op.batched) if batched and k}
    fixed = {x: arg for x, arg in zip(local[1:], found.args[1:], strict=True) if x not in moving}
    stems = {local[0]: "x", **moving}
    return Inner("equations", graph, (local[0], *moving), fixed, prepared=False, stems=stems)


def _step(op: ChainOp, found: Compute) -> Inner:
    """One step: a state from the state before it and one element of each input."""
    local, moving = op.body.input_nodes, 1 + op.slices
    constants = found.args[moving : len(local)]
    return Inner("step", op.body, local[:moving], dict(zip(local[moving:], constants, strict=True)))


def _pull(op: ChainPullback, found: Compute) -> Inner:
    """The cotangents of a segment of some steps, from its first state, its inputs, and a cotangent."""
    moving = 1 + op.slices
    constants = found.args[moving : len(op.body.input_nodes)]
    taken = op.body.dims | dim_symbols([d for arg in found.args for d in arg.shape])
    steps = next(s for s in map(steps_of, count()) if s not in taken)
    graph = stretch_pullback(op, steps, tuple(c.shape for c in constants))
    local = graph.input_nodes
    fixed = dict(zip(local[moving:-1], constants, strict=True))
    return Inner("pull", graph, (*local[:moving], local[-1]), fixed, steps)


@cache
def steps_of(depth: int) -> sympy.Dummy:
    """The number of steps of the segment that is pulled back, inside of ``depth`` other segments."""
    return sympy.Dummy("steps", integer=True, positive=True)


def _function(one: Inner, body: MakesBody, prepared: Callable[[Graph], Graph]) -> DefineFunction:
    value = Value(one.stem, ())
    parameters = [Value(one.stems.get(node, "a"), node.shape) for node in one.parameters]
    given = dict(zip(one.parameters, parameters, strict=True))
    given |= {node: Value("", node.shape) for node in one.fixed}
    results = (prepared(one.graph) if one.prepared else one.graph).output_nodes
    inputs = given or {Node.of(Local(0, ())): value}  # without inputs, the body has the function's value
    made = body(results, inputs, [None] * len(results), repeated=one.repeated)
    lives = lifetimes(made, shown)

    def is_given(result: Expression) -> bool:
        owner = lives.memory.get(result.value, result.value) if isinstance(result, Read) else None
        return owner in parameters and bool(result.shape)

    return DefineFunction(
        value,
        tuple(parameters),
        tuple(Fixed(given[node], outer) for node, outer in one.fixed.items()),
        made.statements,
        made.results,
        tuple(map(is_given, made.results)),
        one.steps,
        one.repeated,
    )

"""Roots as Newton's method on the statements of the residual and its derivative."""

from __future__ import annotations

from symad.errors import LoweringError
from symad.graph import Node
from symad.numeric.program.expressions import Read, Value
from symad.numeric.program.statements import FindRoot
from symad.numeric.scheduling.roles import NO_ROLES
from symad.numeric.scheduling.schedule import Scope, plan
from symad.ops.root import Root, residual_at, slope_at


@plan.dispatch
def plan_root(op: Root, node: Node, scope: Scope) -> None:
    """Raises LoweringError for what standalone code cannot hold: a user's solver, a batch of problems."""
    if op.solver is not None or any(op.batched):
        what = "a solver of your own" if op.solver is not None else "a batch of implicit problems"
        raise LoweringError(f"implicit with {what} cannot be written as standalone code")
    local = op.residual.input_nodes
    unknown = Value("x", local[0].shape)
    known = dict(zip(local[1:], (scope.known[a] for a in node.args[1:]), strict=True))
    inside = Scope({local[0]: Read(unknown), **known}, NO_ROLES)
    residual, slope = residual_at(op, local[0], local[1:]), slope_at(op, local[0], local[1:])
    inside.compute((residual, slope))
    value = scope.value_of(node, "root")
    guess = scope.known[node.args[0]]
    made = FindRoot(value, unknown, guess, inside.block, inside.known[residual], inside.known[slope])
    scope.statements.append(made)
    scope.known[node] = Read(value)

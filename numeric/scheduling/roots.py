"""Roots by Newton's method on the statements of the residual and its derivative."""

from __future__ import annotations

from symad.core.graph import Node
from symad.derivatives.root import Root, residual_at, slope_at
from symad.errors import LoweringError
from symad.numeric.program.expressions import Expression, Position, Read, Value, row
from symad.numeric.program.loops import FindRoot, Loop
from symad.numeric.program.statements import Allocate, Store
from symad.numeric.scheduling.roles import NO_ROLES
from symad.numeric.scheduling.schedule import Scope, plan


@plan.dispatch
def plan_root(op: Root, node: Node, scope: Scope) -> None:
    """Add the statement of one problem, or a loop over the problems of a batch.

    Raises:
        LoweringError: the root has a solver of the user.
    """
    if op.solver is not None:
        raise LoweringError("implicit with a solver of your own cannot be written as standalone code")
    value = scope.value_of(node, "root")
    if not any(op.batched):
        scope.statements.append(find_root(op, value, scope.arguments(node)))
        scope.known[node] = Read(value)
        return
    index, one = Value("t", ()), Value("root", node.shape[1:])
    now = Position(0, index)
    pairs = zip(scope.arguments(node), op.batched, strict=True)
    args = tuple([row(arg, now) if flag else arg for arg, flag in pairs])
    body = (find_root(op, one, args), Store(value, now, Read(one)))
    scope.statements += [Allocate(value), Loop(index, node.shape[0], False, (), body)]
    scope.known[node] = Read(value)


def find_root(op: Root, value: Value, args: tuple[Expression, ...]) -> FindRoot:
    """The statement of one problem, from the expressions of the guess and the parameters."""
    local = op.residual.input_nodes
    unknown = Value("x", local[0].shape)
    inside = Scope(dict(zip(local, (Read(unknown), *args[1:]), strict=True)), NO_ROLES)
    residual, slope = residual_at(op, local[0], local[1:]), slope_at(op, local[0], local[1:])
    inside.compute((residual, slope))
    return FindRoot(value, unknown, args[0], inside.block, inside.known[residual], inside.known[slope])

"""Plans of blocks of nodes: the program before and after the passes, and who reads which node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from symad.core.graph import Node
from symad.numeric.program.expressions import Value
from symad.numeric.program.program import Program
from symad.numeric.program.statements import assignments
from symad.numeric.program.uses import Lifetimes, lifetimes
from symad.numeric.program_passes.memory.allocation import keeping
from symad.numeric.scheduling.blocks import NodeBlock
from symad.numeric.scheduling.roles import Roles


@dataclass(frozen=True)
class Plan:
    """The program of a block of nodes, and what the printer knows about it.

    Attributes:
        block: the nodes as statements, with the value of each node; its program is that before the passes.
        program: the program of the block after all passes.
        numbers: nodes that are read as row numbers only.
        users: for each node the nodes that read it; a result counts as read by itself.
        outputs: the results.
        roles: the names of values that variables of the user hold.
    """

    block: NodeBlock
    program: Program
    numbers: set[Node]
    users: dict[Node, list[Node]]
    outputs: Sequence[Node]
    roles: Roles

    @cached_property
    def lives(self) -> Lifetimes:
        """The lifetimes of the values before the passes; few programs need them."""
        return lifetimes(self.block.program, keeping(self.block.program))

    @cached_property
    def position(self) -> dict[Value, int]:
        """For each value the position of its statement before the passes."""
        statements = enumerate(self.block.program.statements)
        return {made.value: k for k, statement in statements for made in assignments(statement)}

    def outlives(self, value: Value, other: Value | None) -> bool:
        """Whether the memory of a value is read when the other value, or the first one, is computed."""
        return self.lives.end(value) >= (0 if other is None else self.position[other])

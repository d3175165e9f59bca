"""Groups of nodes that can be put in an order: no path leaves a group and returns to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import TypeAlias

from symad.core.graph import Node

MAX_LIFTED = 120
"""The most groups and nodes that one more member of a group may lift.

Origin: it bounds the work for a node, and so keeps the grouping linear in the size of the graph.
"""


@dataclass(eq=False)
class ChainGroup:
    """Nodes of one kernel: the last of them, all, and the arrays that they read."""

    root: Node
    members: set[Node] = field(default_factory=set)
    leaves: set[Node] = field(default_factory=set)
    results: int = 1


Place: TypeAlias = Node | ChainGroup
"""A group, or a node in none."""


class GroupLevels:
    """Levels of groups and of nodes without one: each is above all that read its values.

    What a group reads rises with it, as far as it is too low. A cycle would lift what has to stay below, so
    that it is found by a look at what rises, and at nothing else; as in Pearce and Kelly (2006), A dynamic
    topological sort algorithm for directed acyclic graphs.
    """

    def __init__(self, users: Mapping[Node, Sequence[Node]], of: Mapping[Node, ChainGroup]) -> None:
        self.users, self.of = users, of
        self.level: dict[Place, int] = {}

    def add(self, node: Node) -> None:
        """Give a level to a node in no group, or to its new group; all that read the node have levels."""
        place = self._place(node)
        if place not in self.level:
            self.level[place] = self._above(map(self._place, self.users[node]))

    def lift(self, group: ChainGroup, users: Iterable[Node]) -> bool:
        """Whether a node with these users can join a group without a cycle; if so, that rises above them."""
        others = {self._place(user) for user in users} - {group}
        return self._rise(group, self._above(others), others)

    def merge(self, group: ChainGroup, other: ChainGroup) -> bool:
        """Whether ``other`` can become part of ``group`` without a cycle; if so, ``group`` has its level."""
        low, high = sorted((group, other), key=self.level.__getitem__)
        joined = self._rise(low, self.level[high], {high}, within={high})
        if joined:
            self.level[group] = self.level[high]
        return joined

    def _place(self, node: Node) -> Place:
        return self.of.get(node, node)

    def _above(self, places: Iterable[Place]) -> int:
        return 1 + max((self.level[place] for place in places), default=0)

    def _rise(
        self, group: ChainGroup, level: int, fixed: Set[Place], within: Set[Place] = frozenset()
    ) -> bool:
        """Lift a group, and what it reads, unless one of ``fixed`` would rise or too many would.

        ``within`` are places that become part of it, so that it may read them.
        """
        if self.level[group] >= level:
            return True
        risen: dict[Place, int] = {group: level}
        waiting: list[tuple[int, int, Place]] = [(self.level[group], 0, group)]
        while waiting:  # from low to high: all that lift a place come before it
            _, _, at = heappop(waiting)
            read = at.args if isinstance(at, Node) else at.leaves
            for place in {self._place(arg) for arg in read} - (within if at is group else frozenset()):
                if risen.get(place, self.level.get(place, inf)) > risen[at]:
                    continue
                if place in fixed:
                    return False
                if place not in risen:
                    heappush(waiting, (self.level[place], len(risen), place))
                risen[place] = risen[at] + 1
            if len(risen) > MAX_LIFTED:
                return False
        self.level |= risen
        return True

"""Groups of nodes that stay in an order, against a search for cycles."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import networkx
import numpy as np
import pytest

import symad
from symad.core.contents import readers
from symad.core.following import stand_ins
from symad.core.graph import Graph, Node, topological
from symad.numeric import lower
from symad.numeric.fusion import levels
from symad.numeric.fusion.levels import ChainGroup, GroupLevels


def some_graph(rng: random.Random, nodes: int) -> Graph:
    """Sums of two earlier values each; few are close, so that paths are long and cross."""
    rows = [(rng.randrange(max(k - 4, 0), k + 1), rng.randrange(k + 1)) for k in range(nodes)]

    def f(x):
        values = [x]
        for k, (i, j) in enumerate(rows):
            values.append(np.sin(values[i] + k) * values[j])
        return values[-3:]

    return symad.trace(f, [(5,)])


def is_acyclic(order: list[Node], of: dict[Node, ChainGroup]) -> bool:
    """Whether the groups of nodes, each as one, can be put in an order."""
    joined = networkx.DiGraph()
    pairs = [(of.get(arg, arg), of.get(node, node)) for node in order for arg in node.args]
    joined.add_edges_from(pair for pair in pairs if pair[0] is not pair[1])
    return networkx.is_directed_acyclic_graph(joined)


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_refused_if_and_only_if_there_is_a_cycle(seed: int) -> None:
    rng = random.Random(seed)
    order = topological(some_graph(rng, 15).output_nodes)
    users, of = readers(order), dict[Node, ChainGroup]()
    ordered, refused = GroupLevels(users, of), 0
    for node in reversed(order):
        groups = list(dict.fromkeys(of.values()))
        group = rng.choice([*groups, ChainGroup(node)])
        allowed = group not in groups or is_acyclic(order, of | {node: group})
        if group in groups:
            assert ordered.lift(group, users[node]) == allowed
        if allowed:
            join(node, group, of)
        ordered.add(node)
        refused += not allowed
        if len(groups) > 1:
            first, second = rng.sample(groups, 2)
            merged = of | dict.fromkeys(second.members, first)
            assert ordered.merge(first, second) == is_acyclic(order, merged)
            if is_acyclic(order, merged):
                for member in second.members:
                    join(member, first, of)
        assert is_acyclic(order, of)
    assert refused > 3


def join(node: Node, group: ChainGroup, of: dict[Node, ChainGroup]) -> None:
    of[node] = group
    group.members.add(node)
    group.leaves = {arg for member in group.members for arg in member.args} - group.members


def test_too_many_risen_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice, not an error: the group stays smaller, and nothing has risen."""
    monkeypatch.setattr(levels, "MAX_LIFTED", 0)
    rng = random.Random(1)
    graph = some_graph(rng, 30)
    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(lower(graph, "c")(x), graph(x), rtol=1e-13)


# ---- unrolled loops ------------------------------------------------------------------------------


def steps_of(count: int) -> Graph:
    """The Jacobian of steps of the classical Runge-Kutta method for a free rigid body."""

    def slope(w):
        return np.stack([-w[1] * w[2], w[2] * w[0], -w[0] * w[1] / 3])

    def run(w):
        for _ in range(count):
            k1 = slope(w)
            k2 = slope(w + k1 / 200)
            k3 = slope(w + k2 / 200)
            w = w + (k1 + 2 * k2 + 2 * k3 + slope(w + k3 / 100)) / 600
        return w

    return symad.jacobian(symad.trace(run, [(3,)]))


def work(function: Callable[[], object]) -> Counter[CodeType]:
    """The number of calls of each function, with the calls of C functions in it."""
    count: Counter[CodeType] = Counter()

    def one_more(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            count[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(one_more)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.thorough
def test_the_work_of_every_function_is_linear_in_the_steps() -> None:
    """Twice as many further steps are at most twice the further calls in every function, and a tenth."""
    few, more, most = (work(partial(lower, steps_of(k), "c")) for k in (5, 10, 20))
    ours = str(Path(symad.__file__).parents[1])
    often = [f for f in most if most[f] > 4_000 and f.co_filename.startswith(ours)]
    assert len(often) > 50
    steep = [f for f in often if most[f] - more[f] > 2.2 * max(more[f] - few[f], 1_000)]
    assert not steep


def test_kernels_of_an_unrolled_loop_are_few() -> None:
    """No group is left small because its way to the end is long."""
    few, many = (lower(steps_of(k), "c").source.count("_call(") for k in (10, 20))
    assert many - few <= few


def test_names_are_followed_without_a_look_at_all_of_them() -> None:
    """A kernel's body tells of a few nodes; all that have names may be many more."""

    class Names(dict):  # type: ignore[type-arg]
        def __iter__(self):
            raise AssertionError("all names are looked at")

    nodes = symad.trace(lambda x: [np.sin(x + k) for k in range(5)], [()]).output_nodes
    replaced = dict(zip(nodes[:2], nodes[2:], strict=False))
    assert stand_ins(Names.fromkeys(nodes), replaced) == [*replaced.items()]

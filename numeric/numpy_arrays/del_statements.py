"""Statements that give memory back: ``del`` after the last use of a value, before other memory is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from symad.core.graph import Node
from symad.numeric.numpy_arrays.texts import Name, name_in


@dataclass(frozen=True)
class Group:
    """The statements of one node, and of others that come with it.

    Attributes:
        nodes: what they compute.
        lines: their text.
        made: the names that they give.
        rows: names that a loop gives to its arrays and to parts of arrays.
        allocates: whether they take memory that is worth a statement.
    """

    nodes: Sequence[Node]
    lines: Sequence[str]
    made: Sequence[Name] = ()
    rows: Sequence[Name] = ()
    allocates: bool = True


def with_releases(
    groups: Sequence[Group],
    text: Mapping[Node, str],
    results: Iterable[Node],
    worth: Callable[[Name], bool],
) -> list[str]:
    """The statements with ``del`` after the last use of every value that is no result.

    The memory of an array is free when the last of its names is. It need not be free before other memory is
    taken, so that ``del`` waits until then; what ends with the function needs none.

    Args:
        groups: what is computed, in order.
        text: how nodes are written.
        results: what is read afterwards.
        worth: whether a name is made here, and is that of an array that is worth a statement.
    """
    kept = {name for node in results for name in _names(node, text, node not in text)}
    last: dict[Name, int] = {}
    for k, group in enumerate(groups):
        last |= dict.fromkeys(group.made, k)
        for node in group.nodes:
            last |= dict.fromkeys(_names(node, text), k)
    dead: dict[int, list[Name]] = {}
    for name, k in last.items():
        if name not in kept and worth(name):
            dead.setdefault(k, []).append(name)
    lines: list[str] = []
    rows: list[Name] = []
    ending: list[Name] = []
    for k, group in enumerate(groups):
        if group.allocates:
            lines += [f"{' = '.join(rows)} = None"] if rows else []  # no step, no names: no del
            in_order = sorted(ending, key=_number)
            lines += [f"del {', '.join(in_order)}"] if ending else []
            rows, ending = [], []
        lines += group.lines
        rows += group.rows
        ending += dead.get(k, ())
    return lines


def _number(name: Name) -> int:
    return name.number


def _names(node: Node, text: Mapping[Node, str], reads: bool = True) -> list[Name]:
    """The name of a node, and those that its statements read, through what is written where it is used."""
    found = [name_in(text.get(node))]
    waiting, seen = [*node.args] * reads, set(node.args)
    while waiting:
        arg = waiting.pop()
        if arg in text:
            found.append(name_in(text[arg]))
        else:
            waiting += (a for a in arg.args if a not in seen)
            seen.update(arg.args)
    return [name for name in dict.fromkeys(found) if name is not None]

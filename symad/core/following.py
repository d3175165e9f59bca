"""What becomes of nodes while graphs are rewritten, so that values keep the names which users gave them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from symad.core.nodes import Node
from symad.core.process import within

Replaced = Mapping[Node, Node]

_TOLD: ContextVar[Callable[[Replaced], None] | None] = ContextVar("who follows nodes", default=None)


def told_of_rewriting(listener: Callable[[Replaced], None]) -> AbstractContextManager[None]:
    """A context in which `rebuild` tells ``listener`` which nodes stand for which."""
    return within(_TOLD, listener)


def tell(replaced: Replaced) -> None:
    """Tell the listener of the open context, if any, for which nodes others stand now."""
    listener = _TOLD.get()
    if listener is not None:
        listener(replaced)


def stand_ins(known: Mapping[Node, object], replaced: Replaced) -> list[tuple[Node, Node]]:
    """Those of the known nodes that are replaced, each with its stand-in; one of another shape is none.

    They are in the order of ``replaced``, so that names do not depend on addresses in memory; if one stands
    for several, in that of ``known``, whose first gives it the name.
    """
    both = known.keys() & replaced.keys()
    several = len({replaced[node] for node in both}) < len(both)
    order = both if len(both) < 2 else (node for node in (known if several else replaced) if node in both)
    return [(node, replaced[node]) for node in order if replaced[node].shape == node.shape]


@contextmanager
def following(nodes: Iterable[Node]) -> Iterator[Mapping[Node, Node]]:
    """A context in which nodes are followed through `rebuild`.

    Yields: for each node that stands for one of ``nodes``, the latter; it grows inside the context.
    """
    originals = {node: node for node in nodes}

    def note(replaced: Replaced) -> None:
        for node, made in stand_ins(originals, replaced):
            originals.setdefault(made, originals[node])

    with told_of_rewriting(note):
        yield originals

"""Which function is being traced, and what its values are to the functions inside of it.

Sessions nest. Tracing a function opens one, and so does the body of a loop. A value belongs to the session
in which it was made. In the body of a loop inside that session it is used as it is; in a function inside
that session, whose graph may be differentiated and called by itself, it is a constant (`Captured`);
anywhere else it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import sympy

from symad.core.graph import Node
from symad.errors import TraceError
from symad.ops.loops.captured import Captured


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """One function, or one body of a loop, while it is traced.

    ``dims`` are the dimension symbols and ``symbols`` the nodes of the SymPy symbols that are inputs, of
    this function. ``makes_graph`` is False for bodies, whose nodes join the graph around them.
    """

    title: str = "no function"
    dims: frozenset[sympy.Symbol] = frozenset()
    symbols: dict[sympy.Symbol, Node] = field(default_factory=dict)
    parent: Session | None = None
    makes_graph: bool = True


OUTSIDE = Session()
"""No function is being traced. Values made here are arrays of symbolic size, the same everywhere."""

SESSION: ContextVar[Session] = ContextVar("symad session", default=OUTSIDE)


def is_tracing() -> bool:
    """True if a function is being traced."""
    return SESSION.get() is not OUTSIDE


def seen(node: Node, owner: Session) -> Node:
    """A value of ``owner`` as the session that is open now sees it.

    Raises:
        TraceError: the session of the value is closed.
    """
    here: Session | None = SESSION.get()
    outside = False
    while here is not owner and here is not None:
        outside = outside or here.makes_graph
        here = here.parent
    if here is OUTSIDE or owner is OUTSIDE:
        return node
    if here is None:
        raise TraceError(
            f"a traced value of shape {node.shape} belongs to {owner.title}, which has ended; return the "
            "value from there instead of keeping it in a variable"
        )
    return Node.of(Captured(node, owner)) if outside else node


def symbol_node(symbol: sympy.Symbol) -> Node | None:
    """What a SymPy symbol stands for in the session that is open, or in those around it; None if nothing."""
    session: Session | None = SESSION.get()
    while session is not None:
        if symbol in session.symbols:
            return seen(session.symbols[symbol], session)
        session = session.parent
    return None


@contextmanager
def session(opened: Session) -> Iterator[None]:
    """While this lasts, values belong to a session."""
    token = SESSION.set(opened)
    try:
        yield
    finally:
        SESSION.reset(token)


@contextmanager
def body(title: str) -> Iterator[None]:
    """While this lasts, values belong to the body of a loop; they are not to be used behind it."""
    around = SESSION.get()
    with session(Session(title, around.dims, {}, around, makes_graph=False)):
        yield

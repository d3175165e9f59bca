"""The function that is being traced, and the meaning of its values in functions inside of it.

Sessions are nested. Tracing a function opens one, and so does the body of a loop. A value belongs to the
session in which it was made. The body of a loop inside that session uses the value directly. In a function
inside that session, whose graph may be differentiated and called separately, it is a constant (`Captured`);
anywhere else it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import sympy

from symad.core.graph import Node
from symad.core.process import within
from symad.errors import TraceError
from symad.higher_order.captured import Captured
from symad.tracing.proxies.frames import Frames


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """One function, or one body of a loop, while it is traced.

    ``dims`` are the dimension symbols of this function, and ``symbols`` the nodes of the SymPy symbols that
    are its inputs. ``makes_graph`` is False for bodies, whose nodes become part of the graph around them.
    ``frames`` are those of the function, whose variables name its values.
    """

    title: str = "no function"
    dims: frozenset[sympy.Symbol] = frozenset()
    symbols: dict[sympy.Symbol, Node] = field(default_factory=dict)
    parent: Session | None = None
    makes_graph: bool = True
    frames: Frames | None = None


OUTSIDE = Session()
"""No function is being traced. Values made here are arrays of symbolic size, the same in all sessions."""

SESSION: ContextVar[Session] = ContextVar("symad session", default=OUTSIDE)


def is_tracing() -> bool:
    """True if a function is being traced."""
    return SESSION.get() is not OUTSIDE


def seen(node: Node, owner: Session) -> Node:
    """A value of ``owner`` as a node of the session that is open now.

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
    """The node of a SymPy symbol in the open session, or in those around it; None if there is none."""
    session: Session | None = SESSION.get()
    while session is not None:
        if symbol in session.symbols:
            return seen(session.symbols[symbol], session)
        session = session.parent
    return None


def session(opened: Session) -> AbstractContextManager[None]:
    """A context in which values belong to a session."""
    return within(SESSION, opened)


@contextmanager
def body(title: str) -> Iterator[None]:
    """A context in which values belong to the body of a loop; they must not be used after it."""
    around = SESSION.get()
    with session(Session(title, around.dims, {}, around, False, around.frames)):
        yield


WHILE_TRACING: list[Callable[[], AbstractContextManager[Any]]] = []
"""Contexts that are open while a function is traced; modules that need one add it."""


@contextmanager
def tracing(opened: Session | None = None) -> Iterator[None]:
    """A context in which values belong to a session, which defines the inputs."""
    with ExitStack() as stack:
        stack.enter_context(session(opened if opened is not None else SESSION.get()))
        for context in WHILE_TRACING:
            stack.enter_context(context())
        yield

"""The contexts in which a function is traced: its session, and those that other modules need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from symad.tracing.proxies.sessions import SESSION, Session, session

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

"""Questions about symbolic sizes in a traced function, which SymPy answers by form alone.

Its ``n == 1`` is False and its ``bool(n % 2)`` True, so that a graph for all n would be one for some.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sympy

from symad.tracing.proxies.sessions import SESSION
from symad.tracing.users_line import is_users_code

STRUCTURAL: Callable[[object, object], bool] = sympy.Expr.__eq__


def _refuse(size: sympy.Expr, other: object) -> None:
    """Refuse a comparison in the user's code whose truth depends on the values of a call.

    Raises:
        TypeError: as SymPy's for ``n < 1``; the message of `tell` stands for both.
    """
    dims = SESSION.get().dims
    if dims and is_users_code(sys._getframe(2)) and isinstance(other, (int, sympy.Expr)):
        asked = sympy.Eq(size, other)
        if asked.free_symbols and asked.free_symbols <= dims:
            raise TypeError(f"cannot determine truth value of Relational: {asked}")


def _equal(size: sympy.Expr, other: object) -> bool:
    same = STRUCTURAL(size, other)
    if same is not True:  # NotImplemented for an int
        _refuse(size, other)
    return same


def _unequal(size: sympy.Expr, other: object) -> bool:
    same = STRUCTURAL(size, other)
    if same is not True:  # NotImplemented for an int
        _refuse(size, other)
    return same if same is NotImplemented else not same


def _is_not_zero(size: sympy.Expr) -> bool:
    _refuse(size, 0)
    return True


QUESTIONS = {"__eq__": _equal, "__ne__": _unequal, "__bool__": _is_not_zero}
OWN = {name: vars(sympy.Expr)[name] for name in QUESTIONS if name in vars(sympy.Expr)}
"""What the class itself defines of these, in some versions of SymPy."""


@contextmanager
def sizes_are_not_compared() -> Iterator[None]:
    """A context in which the user's code cannot decide by what is not known of a symbolic size."""
    if not SESSION.get().dims or sympy.Expr.__eq__ is _equal:
        yield
        return
    for name, asked in QUESTIONS.items():
        setattr(sympy.Expr, name, asked)
    try:
        yield
    finally:
        for name in QUESTIONS.keys() & vars(sympy.Expr):
            delattr(sympy.Expr, name)
        for name, own in OWN.items():
            setattr(sympy.Expr, name, own)

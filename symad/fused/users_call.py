"""Calls of a user's score, mask or function of pairs: at positions, with the parameters that it names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from symad.core.arrays import ArrayLike
from symad.errors import TraceError


def call_by_name(
    what: str,
    f: object,
    positions: Mapping[str, ArrayLike],
    params: Mapping[str, ArrayLike],
    every: bool = False,
) -> object:
    """f at the positions, by position, and with the parameters that it names, all for ``**kwargs``.

    Args:
        what: the name of the argument by which f was given, for messages.
        f: the function.
        positions: the values of its first arguments, by their usual names.
        params: the other values, by name.
        every: f has to take all of them.

    Raises:
        TraceError: f is not a function, does not take these arguments, asks for a parameter that is not
            given, or does not take a given one although ``every`` says so.
    """
    wanted = f"give a function of ({', '.join(positions)}) and of the parameters in params, by name"
    if not callable(f) or isinstance(f, type):
        raise TraceError(f"{what} is {f!r}; {wanted}")
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        raise TraceError(f"{what} is {f!r}, which does not say what it takes; {wanted}") from None
    accepted = signature.parameters
    if any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
        chosen = dict(params)
    else:
        chosen = {name: value for name, value in params.items() if name in accepted}
    holds = f"params holds {', '.join(params) or 'nothing'}"
    others = [
        p
        for p in list(accepted.values())[len(positions) :]
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    missing = [p.name for p in others if p.default is p.empty and p.name not in chosen]
    if missing:
        raise TraceError(f"{what} asks for parameter {missing[0]}; {holds}")
    try:
        signature.bind(*positions.values(), **chosen)
    except TypeError as error:
        name = getattr(f, "__name__", "f")
        raise TraceError(f"{what} is {name}{signature}: {error}; {wanted}; {holds}") from None
    if every and len(chosen) < len(params):
        unused = next(name for name in params if name not in chosen)
        raise TraceError(f"params holds {unused}, but {what} takes only {', '.join(accepted)}")
    return f(*positions.values(), **chosen)

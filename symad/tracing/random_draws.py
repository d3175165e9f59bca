"""Random numbers that a function draws while it is traced: they become constants, which is told."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import TypeAlias

import numpy as np

from symad.core.process import within
from symad.tracing.names import reachable

_SEEDS: ContextVar[list[int] | None] = ContextVar("the seeds that NumPy makes in a trace", default=None)

Generator: TypeAlias = "np.random.Generator | np.random.RandomState | random.Random"


@contextmanager
def told_of_draws(f: Callable[..., object], name: str) -> Iterator[None]:
    """Warn if the function draws from NumPy's or Python's global generator, or from one that it names.

    A generator that the function itself makes is not watched: from a seed it draws the same in every call.
    One that it makes without a seed is told.
    """
    watched = _generators(f)
    before = _states(watched)
    seeds: list[int] = []
    with within(_SEEDS, seeds):
        yield
    if seeds or _states(watched) != before:
        warnings.warn(
            f"{name} drew random numbers while it was traced: they are constants of the graph, the same in "
            "every call; draw them outside and give them to the function, or use symad.functions.rand",
            UserWarning,
            stacklevel=6,
        )


def noting(original: Callable[[int], int]) -> Callable[[int], int]:
    """The source of NumPy's own seeds, which tells the function that is traced that one was made."""

    @wraps(original)
    def drawn(bits: int) -> int:
        seeds = _SEEDS.get()
        if seeds is not None:
            seeds.append(bits)
        return original(bits)

    return drawn


def _generators(f: Callable[..., object]) -> list[Generator]:
    """The generators that a function, and the functions that it calls, name."""
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    named = reachable(f).values() if isinstance(f, FunctionType) else ()
    return [value for values in named for value in values if isinstance(value, kinds)]


def _states(watched: list[Generator]) -> list[object]:
    """The states of the global generators and of some others, as values that can be compared."""
    found: list[object] = [random.getstate(), _plain(np.random.get_state(legacy=False))]  # noqa: NPY002  (read)
    for one in watched:
        if isinstance(one, random.Random):
            found.append(one.getstate())
        else:
            bits = one.bit_generator if isinstance(one, np.random.Generator) else one._bit_generator
            found.append(_plain(bits.state))
    return found


def _plain(state: object) -> object:
    """A state with its arrays as bytes."""
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state

"""Runs a script, with the first calls of each kernel and graph made twice and arrays overwritten in between.

    python mutating_calls.py SCRIPT ARGUMENTS

A result that shares memory with an argument, a constant or another result raises an AssertionError.
"""

from __future__ import annotations

import dataclasses
import runpy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.core.graph import Graph
from symad.numeric.kernel import Kernel

CALLS = 2
"""The number of calls of each kernel or graph that are made twice."""

PLAIN = (np.ndarray, np.generic, int, float)
checked = 0


def arrays(value: Any) -> list[Any]:
    """The arrays in nested lists, tuples, dicts and dataclasses, and the entries of sparse matrices."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [a for part in value for a in arrays(part)]
    if hasattr(value, "indptr"):
        return [value.data]
    return [value] if isinstance(value, np.ndarray) and value.ndim else []


def copied(value: Any) -> Any:
    """The same structure with copies of its arrays."""
    if isinstance(value, dict):
        return {k: copied(v) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(copied, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **copied(vars(value)))
    return value.copy() if isinstance(value, np.ndarray) else value


def is_plain(value: Any) -> bool:
    """True if a value consists of numbers and NumPy's arrays of numbers only."""
    if dataclasses.is_dataclass(value) and not isinstance(value, (Graph, Kernel)):
        value = vars(value)
    if isinstance(value, dict):
        return all(map(is_plain, value.values()))
    if type(value) in (tuple, list):
        return all(map(is_plain, value))
    return isinstance(value, PLAIN) and getattr(value, "dtype", np.dtype(float)).kind in "fiub"


def twice(name: str, call: Callable[..., Any], values: Any, named: Any) -> Any:
    """The result of a second call, after all arrays of the first have been overwritten."""
    global checked
    first, names = copied(values), copied(named)
    made = call(*first, **names)
    found, given = arrays(made), [*arrays(first), *arrays(names)]
    before = [a.copy() for a in found]
    for k, array in enumerate(found):
        shared = [other for other in (*given, *found[:k]) if np.shares_memory(array, other)]
        assert not shared, f"{name}: result {k} shares memory"
    for array in (*found, *given):
        if array.flags.writeable:
            array[...] = ~array if array.dtype == bool else 5
    again = call(*copied(values), **copied(named))
    for k, (array, right) in enumerate(zip(arrays(again), before, strict=True)):
        assert np.array_equal(array, right, equal_nan=True), f"{name}: result {k} changed"
    checked += 1
    return again


def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A call whose first `CALLS` uses are made twice."""
    left = CALLS

    def run(*values: Any, **named: Any) -> Any:
        nonlocal left
        if left and is_plain([*values, *named.values()]):
            left -= 1
            return twice(name, call, values, named)
        return call(*values, **named)

    return run


def watch() -> None:
    """Watches all kernels and graphs that are made from now on."""
    made, called = Kernel.__post_init__, Graph.__call__
    seen: dict[int, int] = {}

    def post_init(self: Kernel) -> None:
        made(self)
        if self.origin is not None:  # what lower() returns
            object.__setattr__(self, "__call__", watched(self.name, self.__call__))

    def graph_call(self: Graph, *values: Any, **named: Any) -> Any:
        count = seen.get(id(self), 0)
        if count < CALLS and is_plain([*values, *named.values()]):
            seen[id(self)] = count + 1
            return twice(self.name, lambda *v, **n: called(self, *v, **n), values, named)
        return called(self, *values, **named)

    Kernel.__post_init__ = post_init  # type: ignore[method-assign]
    Graph.__call__ = graph_call  # type: ignore[method-assign]


if __name__ == "__main__":
    watch()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    print(f"calls made twice: {checked}")

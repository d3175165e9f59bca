"""Random numbers from a key, in traced functions, on NumPy arrays and on SymPy symbols.

The same key gives the same numbers, in every backend and in a backward pass, which recomputes them: noise is
an input like any other. Give each purpose a separate key by `split` or `fold_in`, and use no key twice.

    first, second = split(key(2026), 2)
    noise = randn(first, (100, 3))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim, as_shape, is_concrete
from symad.core.given import real_array
from symad.core.graph import Graph, Node
from symad.errors import TraceError
from symad.ops.arrays import random
from symad.ops.basic.sources import array_constant, input_node
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, number


def key(seed: int) -> np.ndarray:
    """The key of a seed in 0 … 2⁶⁴ − 1: an array of four integers of 16 bits.

    Returns:
        The key (4,), for `rand`, `randn`, `split` and `fold_in`.

    Raises:
        ShapeError: the seed is not such an integer.

    Example:
        >>> key(1)
        array([1., 0., 0., 0.])
    """
    return random.key_of(seed)


def rand(key: Array, shape: Dim | tuple[Dim, ...] = ()) -> Array:
    """Independent uniform numbers in (0, 1), never 0 or 1, by Philox 4×32-10.

    The bits, and so the numbers, are equal in NumPy and on a GPU; those of float32 are those of float64
    moved to the middle of a cell of width 2⁻²³. Derivatives by the key are 0.

    Args:
        key: a seed, or keys (..., 4) as an array, a traced value, an ArraySymbol or an IndexedBase.
        shape: the shape of the result for each key; an int is a tuple of one, dimensions may be symbols.

    Returns:
        Numbers of the shape of the keys without the last axis, then ``shape``.

    Raises:
        ShapeError: the last axis of the keys does not have four elements, or a seed is out of range.

    Example:
        >>> from symad import functions
        >>> draws = functions.rand(functions.key(1), (1000,))  # the same in each run
        >>> bool(abs(draws.mean() - 0.5) < 0.03)
        True
    """
    return _made(lambda node: random.uniform(node, _shape(shape)), key, is_concrete(_shape(shape)))


def randn(key: Array, shape: Dim | tuple[Dim, ...] = ()) -> Array:
    """Independent standard normal numbers by the transform of Box and Muller; see `rand`.

    Returns:
        Numbers of the shape of the keys without the last axis, then ``shape``.

    Raises:
        ShapeError: the last axis of the keys does not have four elements, or a seed or ``shape`` is not one.
        TraceError: the key is no array of real numbers, seed, SymPy array or traced value.

    Example:
        >>> draws = randn(key(1), (1000,))
        >>> bool(abs(draws.mean()) < 0.1 and abs(draws.std() - 1) < 0.1)
        True
    """
    return _made(lambda node: random.normal(node, _shape(shape)), key, is_concrete(_shape(shape)))


def split(key: Array | int, count: Dim = 2) -> Array:
    """``count`` new keys (count, 4) of one key (4,): independent streams.

    Returns:
        The keys, (count, 4).

    Raises:
        ShapeError: the key does not have four elements, a seed is out of range, or ``count`` is no dimension.
        TraceError: the key is no array of real numbers, seed, SymPy array or traced value.

    Example:
        >>> from symad import functions
        >>> first, second = functions.split(functions.key(1))
        >>> bool((first == second).all())
        False
    """
    return _made(lambda node: random.split(node, count), key, is_concrete(as_shape((count,))))


def fold_in(key: Array, number: Array | int) -> Array:
    """The key of the stream with this number, an integer from 0 up, such as a step or a sample.

    Returns:
        A key (4,), or one for each number and key (..., 4).

    Raises:
        EvaluationError: the number is not an integer, or is negative.
        ShapeError: the last axis of the keys does not have four elements, or a seed is out of range.
        TraceError: the key is no array of real numbers, seed, SymPy array or traced value.

    Example:
        >>> epoch, other = fold_in(key(1), 0), fold_in(key(1), 1)
        >>> bool((epoch == other).all())
        False
    """
    which = as_node(number)
    return _made(lambda node: random.fold_in(node, which), key, not isinstance(number, Proxy))


def _shape(shape: Dim | tuple[Dim, ...]) -> tuple[int | sympy.Symbol, ...]:
    return as_shape(shape if isinstance(shape, (tuple, list)) else (shape,))


def _made(make: Callable[[Node], Node], key: Array | int, known: bool) -> Any:
    """The result of ``make`` for a key: traced for traced keys, SymPy's for SymPy's, otherwise its value."""
    if isinstance(key, Proxy):
        return Proxy(make(number(key)))
    if isinstance(key, sympy.Basic) and not isinstance(key, sympy.Integer):
        from symad.tracing.into_sympy.nodes import nodes_to_sympy

        if not hasattr(key, "shape"):
            raise TraceError(f"the random key {key} is a scalar; give an ArraySymbol or IndexedBase (4,)")
        return nodes_to_sympy([make(input_node(key, key.shape))])[0]
    if isinstance(key, (int, np.integer, sympy.Integer)):
        key = random.key_of(int(key))
    numbers = real_array("random numbers", "the key", key)
    node = make(array_constant(np.asarray(numbers, dtype=np.float64)))
    return Graph((), (node,))() if known else Proxy(node)

"""Random changes to the text and the structure of certificates, and certificates to change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import sympy as sp

import symad

x, y, z = sp.symbols("x y z", real=True)
p = sp.Symbol("p", positive=True)
n, k = sp.symbols("n k", integer=True, positive=True)


def _layer() -> Any:
    f = symad.trace(lambda a, W: np.tanh(W @ a), [(2,), (2, 2)])

    def backward(a: Any, W: Any, y_bar: Any) -> Any:
        z_bar = y_bar * (1 - np.tanh(W @ a) ** 2)
        return W.T @ z_bar, np.outer(z_bar, a)

    return symad.verify(f, vjp=symad.trace(backward, [(2,), (2, 2), (2,)]), seed=1)


def _all_sizes() -> Any:
    A, v = sp.MatrixSymbol("A", n, k), sp.MatrixSymbol("v", k, 1)
    return symad.check(sp.Trace((A * v).T * (A * v)) / 2, v, seed=1)


MADE: dict[str, Callable[[], Any]] = {
    "gradient": lambda: symad.verify(
        sp.sin(x * y), [x, y], gradient=[y * sp.cos(x * y), x * sp.cos(x * y)], seed=1
    ),
    "equal": lambda: symad.equal(sp.Max(x, y) + sp.Min(x, y), x + y, seed=1),
    "refuted": lambda: symad.verify(x**2, x, gradient=3 * x, seed=1),
    "check": lambda: symad.check((1 - x) ** 2 + 100 * (y - x**2) ** 2, seed=1),
    "along": lambda: symad.verify(
        x**2 * y, [x, y], jvp=2 * x * y * sp.Symbol("x_dot") + x**2 * sp.Symbol("y_dot"), seed=1
    ),
    "logarithm": lambda: symad.check(sp.log(p) * sp.sqrt(p), seed=1),
    "choice": lambda: symad.check(sp.Piecewise((x**2, x < 1), (2 * x - 1, True)), seed=1),
    "jacobian": lambda: symad.verify(
        sp.Matrix([x * y, sp.exp(x)]), [x, y], jacobian=sp.Matrix([[y, x], [sp.exp(x), 0]]), seed=1
    ),
    "program": lambda: symad.verify(
        sp.tanh(x), x, gradient=lambda v: 1 - np.tanh(v) ** 2, hostile=False, seed=1
    ),
    "sigmoid": lambda: symad.check(1 / (1 + sp.exp(-x)), seed=1),
    "layer": _layer,
    "all sizes": _all_sizes,
    "integer": lambda: symad.check(x**n, x, seed=1),
    "abs": lambda: symad.check(sp.Abs(x) + sp.sign(x), seed=1),
    "hessian": lambda: symad.verify(
        x**2 * y, [x, y], hessian=sp.Matrix([[2 * y, 2 * x], [2 * x, 0]]), seed=1
    ),
    "erf": lambda: symad.check(sp.erf(x) * sp.gamma(p), seed=1),
    "where": lambda: symad.verify(sp.Abs(x), x, gradient=sp.Integer(1), where=x > 0, seed=1),
    "softmax": lambda: symad.check(symad.trace(lambda a: np.sum(np.exp(a - np.max(a))), [(3,)]), seed=1),
    "loop": lambda: symad.check(
        symad.trace(lambda a: symad.functions.fold(lambda h, v: np.tanh(h + v), 0.0, a), [(3,)]), seed=1
    ),
    "bessel": lambda: symad.check(sp.besselj(1, x), seed=1),
}  # fmt: skip
"""Certificates of every level, with proofs and without."""

DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 7, 2**63, -(2**63), 10**400, 10**9, 0.5, 1e308, 5e-324, float("nan"),
    float("inf"), "", "proved", "x" * 10**5, "\ud800", "\x00", "1/0", "1e999999999",
    "10**10**9", [], [[]], [None], {}, {"a": 1}, DEEP, [0] * 10**4,
    ["^", 10, ["^", 10, ["^", 10, 10]]], ["sympy.factorial", 3000000], [0, 0, 0],
)  # fmt: skip


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All positions in nested lists and dicts, except that of the whole."""
    items: Any = enumerate(value) if isinstance(value, list) else ()
    items = value.items() if isinstance(value, dict) else items
    for key, item in items:
        yield (*way, key)
        yield from places(item, (*way, key))


def at(data: Any, way: tuple[Any, ...]) -> Any:
    """The value at a position."""
    for key in way:
        data = data[key]
    return data


def _chosen(data: Any, rng: Random) -> tuple[Any, ...]:
    """A random position; a part of the document is drawn first, so that long parts are not preferred."""
    top = rng.choice([key for key in data if isinstance(data[key], (list, dict)) and data[key]] or list(data))
    return rng.choice([(top,), *((top, *way) for way in places(data[top]))])


def _put(data: Any, rng: Random, value: Any) -> None:
    way = _chosen(data, rng)
    at(data, way[:-1])[way[-1]] = value


def replaced(data: Any, rng: Random, others: list[Any]) -> None:
    """Replaces a value by one of another kind."""
    _put(data, rng, rng.choice(VALUES))


def nested(data: Any, rng: Random, others: list[Any]) -> None:
    """Puts a value into a list, or replaces a list by its element."""
    way = _chosen(data, rng)
    value = at(data, way)
    inner = isinstance(value, list) and value and rng.random() < 0.5
    at(data, way[:-1])[way[-1]] = value[0] if inner else [value]


def moved(data: Any, rng: Random, others: list[Any]) -> None:
    """Change a number by one, in sign or in size, or to the position of its own node, which makes a cycle."""
    ways = [w for w in places(data) if type(at(data, w)) is int]
    way = rng.choice(ways)
    ordinal = [key for key in way if isinstance(key, int)]
    old = at(data, way)
    at(data, way[:-1])[way[-1]] = rng.choice([old + 1, old - 1, -old, 2 * old, old + 1000, *ordinal])


def removed(data: Any, rng: Random, others: list[Any]) -> None:
    """Removes a part."""
    way = _chosen(data, rng)
    del at(data, way[:-1])[way[-1]]


def shuffled(data: Any, rng: Random, others: list[Any]) -> None:
    """Shuffles a list, or repeats one of its elements."""
    lists = [w for w in places(data) if isinstance(at(data, w), list) and len(at(data, w)) > 1]
    found = at(data, rng.choice(lists))
    if rng.random() < 0.5:
        rng.shuffle(found)
    else:
        found.insert(rng.randrange(len(found)), rng.choice(found))


def exchanged(data: Any, rng: Random, others: list[Any]) -> None:
    """Exchanges two parts."""
    one, two = _chosen(data, rng), _chosen(data, rng)
    if one[: len(two)] == two or two[: len(one)] == one:
        return
    a, b = at(data, one), at(data, two)
    at(data, one[:-1])[one[-1]], at(data, two[:-1])[two[-1]] = b, a


def from_another(data: Any, rng: Random, others: list[Any]) -> None:
    """Replaces a part by that of another certificate."""
    other = rng.choice(others)
    key = rng.choice(["comparisons", "proofs", "entries", "model", "graph"])
    if key == "graph" and data["comparisons"] and other["comparisons"]:
        rng.choice(data["comparisons"])["graph"] = rng.choice(other["comparisons"])["graph"]
    elif key in other:
        data[key] = other[key]


def renamed(data: Any, rng: Random, others: list[Any]) -> None:
    """Replaces a text by another text of the document."""
    ways = [w for w in places(data) if isinstance(at(data, w), str)]
    at(data, (way := rng.choice(ways))[:-1])[way[-1]] = at(data, rng.choice(ways))


STRUCTURAL = (replaced, nested, moved, moved, removed, shuffled, exchanged, from_another, renamed)


def of_bytes(text: str, rng: Random) -> str:
    """The text with some characters changed, removed, repeated, or cut off."""
    start = rng.randrange(len(text))
    stop = start + rng.choice([1, 1, 1, 2, 5, 40])
    kind = rng.randrange(5)
    if kind == 0:
        return text[:start] + rng.choice('0123456789-+eE[]{}",: \x00\ud800xNaN∞') + text[stop:]
    if kind == 1:
        return text[:start] + text[stop:]
    if kind == 2:
        return text[:stop] + text[start:stop] * rng.choice([1, 3, 1000]) + text[stop:]
    if kind == 3:
        return text[:start]
    digits = [j for j, c in enumerate(text) if c.isdigit()]
    j = rng.choice(digits)
    return text[:j] + rng.choice("0123456789") * rng.choice([1, 1, 1, 400, 10**4]) + text[j + 1 :]


def mutants(texts: dict[str, str], count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Random mutants: the kind of change with the name of the certificate, and the changed text."""
    rng = Random(seed)
    for _ in range(count):
        name = rng.choice(sorted(texts))
        if rng.random() < 0.25:
            yield f"{name}: bytes", of_bytes(texts[name], rng)
            continue
        data, others = json.loads(texts[name]), [json.loads(t) for t in texts.values()]
        changes = rng.choices(STRUCTURAL, k=rng.choice([1, 1, 1, 2, 4]))
        for change in changes:
            try:
                change(data, rng, others)
            except (IndexError, KeyError, TypeError, ValueError, AttributeError):
                continue  # earlier changes have left no place for this one
        yield f"{name}: {', '.join(c.__name__ for c in changes)}", json.dumps(data)

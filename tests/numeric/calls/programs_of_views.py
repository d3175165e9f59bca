"""Random programs of views, constants and loops, whose results may show memory that is not theirs."""

from typing import Any

import numpy as np

from symad import functions

SHAPES = [(3, 3), (3,), ()]
MEMORY = ["all", "recompute", "sqrt", "binomial", 2]
MAX_ELEMENTS = 200


def views(u: Any, v: Any, rng: np.random.Generator) -> list[Any]:
    """Steps that show elements of ``u``, constants, or both."""
    constant = np.arange(float(np.prod(u.shape, dtype=int))).reshape(u.shape) + 1
    steps = [
        lambda: constant,
        lambda: np.where(constant > 2, u, constant),
        lambda: np.where(np.ones(u.shape) > 0, constant, u),
        lambda: u * 1 + 0,
        lambda: u + v if u.shape == v.shape else np.sin(u),
        lambda: functions.stop_gradient(u),
        lambda: np.maximum(u, u),
        lambda: np.concatenate([u, u]) if u.ndim else np.stack([u, u]),
    ]
    if u.ndim < 3:
        steps += [lambda: np.expand_dims(u, 0), lambda: np.broadcast_to(u, (2, *u.shape))]
    if u.ndim:
        steps += [lambda: u.T, lambda: u[::-1], lambda: u[0], lambda: u[1:] if u.shape[0] > 1 else u]
        steps += [lambda: u.reshape(-1), lambda: np.pad(u, 1)]
    if u.ndim == 2:
        steps += [lambda: np.diagonal(u)]
    return steps


def loops(u: Any, v: Any, rng: np.random.Generator) -> list[Any]:
    """Folds and scans over ``v`` whose states are constants, arguments or each other."""
    constant = np.arange(float(np.prod(u.shape, dtype=int))).reshape(u.shape) + 1
    zeros, ones = np.zeros(v.shape[1:]), np.ones(v.shape[1:])
    memory, k = MEMORY[rng.integers(len(MEMORY))], rng.integers(2)
    made = [
        (functions.fold, lambda h, x: h, u),
        (functions.fold, lambda h, x: constant + 0 * h, u),
        (functions.fold, lambda h, x: np.where(h > 0, h, constant), u),
        (functions.fold, lambda h, x: h + x, zeros),
        (functions.scan, lambda h, x: h * x, ones),
        (functions.fold, lambda h, x: (h[1], h[0]), (u, constant)),
        (functions.fold, lambda h, x: (x, h[0]), (ones, v[0] * 1)),
        (functions.scan, lambda h, x: h, u),
    ]

    def run(loop: Any, step: Any, start: Any) -> Any:
        found = loop(step, start, v, memory=memory)
        return found[k] if isinstance(start, tuple) else found

    return [lambda case=case: run(*case) for case in made]


def program(seed: int, *inputs: Any) -> tuple[Any, ...]:
    """One to three results of a random program of the inputs, which have the shapes `SHAPES`."""
    rng = np.random.default_rng(seed)
    pool = [*inputs]
    for _ in range(rng.integers(1, 8)):
        u, v = (pool[rng.integers(len(pool))] for _ in range(2))
        steps = loops(u, v, rng) if v.ndim and rng.random() < 0.4 else views(u, v, rng)
        found = steps[rng.integers(len(steps))]()
        if found.ndim <= 3 and np.size(found) < MAX_ELEMENTS:
            pool.append(found)
    return tuple(pool[-1 - k] for k in range(rng.integers(1, 4)))


def total(seed: int, *inputs: Any) -> Any:
    """A number whose gradient is constant, or shows an argument."""
    results = program(seed, *inputs)
    return sum(np.sum(r if seed % 2 else r * np.sum(inputs[0])) for r in results)

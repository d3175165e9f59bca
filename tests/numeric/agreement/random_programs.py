"""Random array programs, drawn while they run: for NumPy, for traced values, and for PyTorch."""

import importlib

import numpy as np
from scipy import special

import symad
from symad import functions


class _Torch:
    """torch, imported when a program runs on tensors: the side of NumPy needs none."""

    def __getattr__(self, name):
        return lambda *args, **given: getattr(importlib.import_module("torch"), name)(*args, **given)


torch = _Torch()


def both(numpy_function, torch_function=None):
    """A function by the world it is for."""
    return {"numpy": numpy_function, "torch": torch_function or numpy_function}


ONE = [
    both(np.sin, torch.sin),
    both(np.tanh, torch.tanh),
    both(lambda a: np.exp(-a * a), lambda a: torch.exp(-a * a)),
    both(lambda a: np.log1p(a * a), lambda a: torch.log1p(a * a)),
    both(lambda a: np.sqrt(a * a + 0.5), lambda a: torch.sqrt(a * a + 0.5)),
    both(functions.sigmoid, torch.sigmoid),
    both(functions.softplus, lambda a: torch.logaddexp(a, torch.zeros_like(a))),
    both(functions.silu, lambda a: a * torch.sigmoid(a)),
    both(special.erf, torch.erf),
    both(lambda a: a / ((1.5 + a * a) * (1.5 + a * a)) + a),
    both(lambda a: (a - 1) ** 3 / 4),
    both(lambda a: 1 - 2 * a),
    both(lambda a: np.where(a > 0.1, a, 0.3 * a), lambda a: torch.where(a > 0.1, a, 0.3 * a)),
    both(lambda a: np.clip(a, -0.7, 0.9), lambda a: torch.clip(a, -0.7, 0.9)),
]
TWO = [
    both(lambda a, b: a + b),
    both(lambda a, b: a - a * b),
    both(lambda a, b: a / (1.5 + b * b)),
    both(np.maximum, torch.maximum),
    both(np.hypot, lambda a, b: torch.hypot(*torch.broadcast_tensors(a, b))),
    both(lambda a, b: np.where(a > b, a * b, b), lambda a, b: torch.where(a > b, a * b, b)),
    both(np.logaddexp, lambda a, b: torch.logaddexp(*torch.broadcast_tensors(a, b))),
]
ALONG = [
    both(lambda a, k: np.cumsum(a, k) / 3, lambda a, k: torch.cumsum(a, k) / 3),
    both(lambda a, k: functions.softmax(a, k), lambda a, k: torch.softmax(a, k)),
    both(lambda a, k: a - np.mean(a, axis=k, keepdims=True), lambda a, k: a - a.mean(k, keepdim=True)),
    both(lambda a, k: np.max(a, axis=k, keepdims=True), lambda a, k: torch.amax(a, k, keepdim=True)),
    both(lambda a, k: np.sum(np.sin(a), axis=k), lambda a, k: torch.sin(a).sum(k)),
    both(lambda a, k: functions.logsumexp(a, k), lambda a, k: torch.logsumexp(a, k)),
    both(lambda a, k: np.flip(a, k), lambda a, k: torch.flip(a, (k,))),
    both(lambda a, k: np.roll(a, 1, k), lambda a, k: torch.roll(a, 1, k)),
    both(lambda a, k: np.concatenate([a, 2 * a], k), lambda a, k: torch.cat([a, 2 * a], k)),
    both(lambda a, k: np.stack([a, a + 1], k), lambda a, k: torch.stack([a, a + 1], k)),
    both(lambda a, k: np.repeat(a, 2, k), lambda a, k: torch.repeat_interleave(a, 2, k)),
    both(lambda a, k: np.take(a, np.array([0, -1, 0]), k), lambda a, k: a.index_select(k, places(a, k))),
    both(lambda a, k: np.moveaxis(a, k, 0), lambda a, k: torch.movedim(a, k, 0)),
    both(lambda a, k: np.moveaxis(a, k, 0)[1:], lambda a, k: torch.movedim(a, k, 0)[1:]),
    both(lambda a, k: np.moveaxis(a, k, 0)[-1], lambda a, k: torch.movedim(a, k, 0)[-1]),
    both(lambda a, k: np.moveaxis(a, k, 0)[::-2], lambda a, k: torch.flip(torch.movedim(a, k, 0), (0,))[::2]),
    both(lambda a, k: a.reshape(-1)),
]


def places(a, k):
    return torch.tensor([0, a.shape[k] - 1, 0])


def loop(world, rng, values):
    """A recurrence with one or two states over the first axis of a value; all states, or the last one."""
    x, *others = chosen(rng, values, 3, lambda a: a.ndim > 0 and a.shape[0] > 0)
    several, backwards, last = rng.random(3) < [0.4, 0.3, 0.3]
    memory = ["all", "all", "recompute", 2, "sqrt"][rng.integers(5)]
    f, g, h = (ONE[k][world] for k in rng.integers(len(ONE), size=3))
    state = others[0], (x[0] if rng.random() < 0.5 else others[-1])

    def step(c, t):
        new = np.tanh(f(c[0]) + total(g(t))) if world == "numpy" else torch.tanh(f(c[0]) + total(g(t)))
        return new, (h(c[1]) + total(new)) / 2

    def total(a):
        return a.sum() / 3

    def alone(c, t):
        return step((c, c), t)[0]

    if world == "numpy":
        run = functions.fold if last else functions.scan
        x = x[::-1] if backwards else x
        return run(step, state, x, memory)[1] if several else run(alone, state[0], x, memory)
    made = []
    for t in reversed(range(len(x))) if backwards else range(len(x)):
        state = step(state, x[t])
        made.append(state[1] if several else state[0])
    return made[-1] if last else torch.stack(made)


def part(world, rng, values):
    """What is computed again for derivatives; its result may be a view of its argument."""
    (a,) = chosen(rng, values, 1, lambda a: a.ndim > 0)
    f, plain = ONE[rng.integers(len(ONE))][world], rng.random() < 0.3
    axes = tuple(reversed(range(a.ndim)))
    if world == "torch":
        return (a if plain else f(f(a))).permute(axes)
    return symad.remat(lambda y: np.transpose(y if plain else f(f(y)), axes))(a)


def product(world, rng, values):
    """Matrix products, of batches of matrices, of vectors, and of an array with itself."""
    a, b = chosen(rng, values, 2, lambda a: a.ndim > 0 and a.shape[-1] > 0)
    fits = b.shape[0 if b.ndim == 1 else -2] == a.shape[-1] and (b.ndim < 3 or a.shape[:-2] == b.shape[:-2])
    right = b if fits else a.swapaxes(-1, -2) if a.ndim > 1 else a
    return (a @ right) / a.shape[-1]


def chosen(rng, values, count, fits):
    """Values that fit, late ones rather than early ones."""
    fitting = [v for v in values if fits(v)]
    return [fitting[-1 - int(len(fitting) * rng.random() ** 2)] for _ in range(count)]


def elementwise(world, rng, values):
    a, b = chosen(rng, values, 2, lambda a: True)
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    if rng.random() < 0.5 or not all(m == n or 1 in (m, n) for m, n in pairs):
        return ONE[rng.integers(len(ONE))][world](a)
    return TWO[rng.integers(len(TWO))][world](a, b)


def along(world, rng, values):
    (a,) = chosen(rng, values, 1, lambda a: a.ndim > 0 and 0 not in a.shape and a.ndim < 4)
    return ALONG[rng.integers(len(ALONG))][world](a, int(rng.integers(a.ndim)))


STEPS = [elementwise, elementwise, elementwise, along, along, along, product, loop, part]


def program(world, seed, inputs):
    """The values of a random program, and at the end a number made of some of them."""
    rng = np.random.default_rng(seed)
    values = list(inputs)
    for _ in range(int(rng.integers(3, 10))):
        values.append(STEPS[rng.integers(len(STEPS))](world, rng, values))
    results = [values[-1], *chosen(rng, values, int(rng.integers(3)), lambda a: True)]
    weigh = ONE[rng.integers(6)][world]
    return results, sum(weigh(a).sum() / max(1, int(np.prod(a.shape))) for a in results)


def shapes_of(seed):
    rng = np.random.default_rng(10**6 + seed)
    sizes = rng.choice([1, 2, 3, 4, 5, 8, 17], size=2)
    ranks = [int(rng.integers(1, 4)), *rng.integers(0, 4, size=2)]
    return [tuple(int(d) for d in rng.choice(sizes, size=rank)) for rank in ranks]

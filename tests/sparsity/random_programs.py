"""Random programs of slices, pads and sums."""

import numpy as np

POINTWISE = [
    np.sin,
    np.tanh,
    lambda a: a**2,
    lambda a: 3 * a - 1,
    lambda a: 1 / (2 + a**2),
    lambda a: np.where(a > 0.3, a, -2 * a),
    np.negative,
    lambda a: np.maximum(a, 0.1),
]


def moved(rng, a):
    """A slice, a shift, padding, a reversal, every second element, a sum along an axis, or a copy."""
    kind = rng.integers(7)
    axis = int(rng.integers(a.ndim))
    if kind == 0 and a.shape[axis] > 2:
        return a[(slice(None),) * axis + (slice(1, -1),)]
    if kind == 1:
        return np.roll(a, int(rng.integers(1, 3)), axis)
    if kind == 2:
        return np.pad(a, 1)
    if kind == 3:
        return np.flip(a, axis)
    if kind == 4 and a.shape[axis] > 2:
        return a[(slice(None),) * axis + (slice(None, None, 2),)]
    if kind == 5 and a.ndim > 1:
        return np.sum(a, axis) * np.ones(a.shape[axis])[0]
    return np.concatenate([a, 2 * a], axis)


def program(seed, *arrays):
    """A few random steps; two branches of one shape are joined by a sum or a product."""
    rng = np.random.default_rng(seed)
    a = arrays[0]
    for _ in range(int(rng.integers(2, 6))):
        step = rng.integers(4)
        if step == 0 or a.ndim == 0:
            a = POINTWISE[rng.integers(len(POINTWISE))](a)
        elif step == 1:
            a = moved(rng, a)
        elif step == 2:
            b = np.roll(a, 1, 0)
            a = a * b if rng.random() < 0.5 else a - 2 * b
        elif len(arrays) > 1:
            a = a * arrays[1]
    return a


SHAPES = [[(6,)], [(4, 3)], [(5,), ()], [(2, 3, 2)]]

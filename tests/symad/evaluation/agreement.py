"""Compares a traced function with the Python function: values by NumPy, tangents by differences."""

import numpy as np

import symad


def values_agree(f, *points):
    """Checks that the traced function and the function have the same values at the points."""
    graph = symad.trace(f, [p.shape if isinstance(p, np.ndarray) else p for p in points])
    expected, found = f(*points), graph(*points)
    if not isinstance(expected, (tuple, list)):
        expected, found = (expected,), (found,)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, np.asarray(b, dtype=float), rtol=1e-13, atol=1e-14)
    return graph


def tangents_agree(f, *points):
    """Checks the tangent in a random direction against central differences, extrapolated once."""
    graph = symad.trace(f, [p.shape if isinstance(p, np.ndarray) else p for p in points])
    rng = np.random.default_rng(6)
    directions = [rng.normal(size=np.shape(p)) for p in points]
    count = len(graph.outputs)

    def at(t):
        moved = [p + t * d for p, d in zip(points, directions, strict=True)]
        value = f(*moved)
        return [np.asarray(v, float) for v in (value if isinstance(value, (tuple, list)) else (value,))]

    def slope(h):
        return [(a - b) / (2 * h) for a, b in zip(at(h), at(-h), strict=True)]

    h = 1e-3
    found = symad.pushforward(graph)(*points, *directions)[count:]
    for coarse, fine, y_dot in zip(slope(h), slope(h / 2), found, strict=True):
        np.testing.assert_allclose(y_dot, (4 * fine - coarse) / 3, rtol=1e-7, atol=1e-9)

"""Stencils by slices."""

from itertools import pairwise

import numpy as np
import sympy


def film(u):
    """The area of a film over a grid, zero around it, and a load."""
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


def film_of_symbols(u):
    """The same, element by element."""
    m, n = u.shape
    at = lambda i, j: u[i, j] if 0 <= i < m and 0 <= j < n else 0  # noqa: E731
    area = sum(
        sympy.sqrt(1 + (at(i + 1, j) - at(i, j)) ** 2 + (at(i, j + 1) - at(i, j)) ** 2)
        for i in range(-1, m)
        for j in range(-1, n)
    )
    return area + sum(sympy.exp(x) for x in u.ravel())


def quartic(u):
    """Fourth powers of differences along each axis: up to four parts meet at an entry."""
    return np.sum((u[1:] - u[:-1]) ** 4) + np.sum((u[:, 1:] - u[:, :-1]) ** 4) + np.sum(u**2)


def quartic_of_symbols(u):
    """The same, element by element."""
    differences = [*(u[1:] - u[:-1]).ravel(), *(u[:, 1:] - u[:, :-1]).ravel()]
    return sum(d**4 for d in differences) + sum(x**2 for x in u.ravel())


def increments(u):
    """Logarithms of differences along rows: between the rows they would have no value."""
    return np.sum(np.log(u[:, 1:] - u[:, :-1]))


def increments_of_symbols(u):
    """The same, element by element."""
    return sum(sympy.log(d) for d in (u[:, 1:] - u[:, :-1]).ravel())


def bricks(u):
    """A stencil in three dimensions."""
    d = u[1:, 1:, 1:] - u[:-1, :-1, 1:]
    return np.sum(np.cosh(d) * u[:-1, 1:, 1:])


def bricks_of_symbols(u):
    """The same, element by element."""
    d = u[1:, 1:, 1:] - u[:-1, :-1, 1:]
    return sum(sympy.cosh(a) * b for a, b in zip(d.ravel(), u[:-1, 1:, 1:].ravel(), strict=True))


def valley(x):
    """Rosenbrock's function: three diagonals, two parts meet on the main one."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def loads(u):
    """A diagonal Hessian."""
    return np.sum(np.exp(u)) + np.sum(u**3)


STENCILS = {
    "film": (film, film_of_symbols, (4, 3)),
    "quartic": (quartic, quartic_of_symbols, (4, 5)),
    "increments": (increments, increments_of_symbols, (3, 4)),
    "bricks": (bricks, bricks_of_symbols, (3, 3, 2)),
    "valley": (valley, lambda x: sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(x)), (7,)),
    "loads": (loads, lambda u: sum(sympy.exp(x) + x**3 for x in u.ravel()), (3, 4)),
}

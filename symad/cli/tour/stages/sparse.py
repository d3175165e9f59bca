"""Stages of sparse differentiation: what colors save, and Newton's method with sparse Hessians."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.display.pages import coloring_svg
from symad.saving.atomic_files import write_text
from symad.sparsity import color

if TYPE_CHECKING:
    from symad.sparsity.coloring.coloring import Coloring

Array = np.ndarray

SIDE = 12
"""Points along each side of the grid in the model; Newton's method runs on a finer one."""


def film(u: Array) -> Array:
    """The area over a grid, flat outside, plus exp(u)."""
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


@stage("grid energy", "the area of a film plus exp(u) on a grid: a Hessian of seven points a row", quick=True)
def grid_energy() -> TourModel:
    """Neighbors only are coupled: of the 144² second derivatives 1 in 25 is stored."""
    point = np.random.default_rng(0).normal(size=(SIDE, SIDE))
    return TourModel(film, [point], inputs=[(SIDE, SIDE)], use=newton, check=symad.trace(film, [(2, 2)]))


def newton(made: Made) -> list[Finding]:
    """Newton's method on 40×40 unknowns with SuperLU, and the sparse Hessian against the dense one."""
    from scipy.sparse.linalg import splu

    from symad.numeric import lower

    point = np.random.default_rng(1).normal(size=(SIDE, SIDE))
    small = symad.hessian(made.graph, sparse=True)
    apart = float(np.abs(small(point).toarray() - symad.hessian(made.graph)(point)).max())
    start = time.perf_counter()
    graph = symad.trace(film, [(40, 40)])
    hessian = lower(symad.hessian(graph, sparse=True))
    gradient = lower(symad.gradient(graph))
    u, steps = np.zeros((40, 40)), 0
    while (slope := np.ravel(gradient(u))) @ slope > 1e-22 and steps < 20:
        u = u - splu(hessian(u).tocsc()).solve(slope).reshape(u.shape)
        steps += 1
    seconds = time.perf_counter() - start
    matrix = hessian(u)
    share = 100 * matrix.nnz / matrix.shape[0] ** 2
    return [
        Finding(f"the Hessian comes as {small.report}", "without seeds" in small.report),
        Finding(f"the sparse and the dense Hessian differ by {apart:.0e}", apart < 1e-12),
        Finding(
            f"Newton's method on 1600 unknowns takes {steps} steps and {seconds:.1f} s with all code made; "
            f"{matrix.nnz} second derivatives are stored, {share:.1f} % of all",
            steps <= 8,
        ),
    ]


@stage("brusselator", "the 2-D Brusselator, a stiff system: colors for its Jacobian", quick=True)
def brusselator() -> TourModel:
    """u' = 1 + u²v − 4.4u + 10Δu, v' = 3.4u − u²v + 10Δv on a periodic grid."""
    point = np.random.default_rng(0).uniform(size=(2, 4, 4))
    return TourModel(rates, [point], inputs=[(2, 4, 4)], use=count_colors)


def rates(w: Array) -> Array:
    """(u', v') for w = (u, v), shape (2, n, n)."""
    u, v = w[0], w[1]
    scale = 10 * u.shape[0] ** 2

    def laplacian(a: Array) -> Array:
        near = np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
        return scale * (near - 4 * a)

    return np.stack([1 + u**2 * v - 4.4 * u + laplacian(u), 3.4 * u - u**2 * v + laplacian(v)])


FOUR_BY_FIVE = np.array([[0, 1, 0, 2, 0], [0, 0, 0, 3, 4], [0, 5, 6, 0, 0], [7, 0, 8, 0, 0]])


def count_colors(made: Made) -> list[Finding]:
    """Products that give whole Jacobians: 8 of 2048 columns, 3 for an arrow, 2 for the 4×5 example."""
    start = time.perf_counter()
    graph = symad.trace(rates, [(2, 32, 32)])
    found = color(symad.jacobian_sparsity(graph))
    seconds = time.perf_counter() - start
    arrow = np.eye(30, dtype=bool)
    arrow[0] = arrow[:, 0] = True
    both, columns = color(arrow, "bidirectional"), color(arrow, "column")
    example = color(FOUR_BY_FIVE)
    seeds = example.seeds(int).T.tolist()
    back = example.decompress(example.compress(FOUR_BY_FIVE)).toarray()
    if made.out is not None:
        _draw(made.out, example, both)
    return [
        Finding(
            f"on a 32×32 grid, {found.num_colors} pushforwards give all {found.pattern.nnz} entries of the "
            f"2048×2048 Jacobian (at least {found.lower_bound}; first fit takes 12); pattern and colors took "
            f"{seconds:.1f} s",
            found.num_colors <= 10,
        ),
        Finding(
            f"an arrow matrix of 30 rows takes {columns.num_colors} products by columns alone, and "
            f"{both.num_colors} by rows and columns, which is proved to be least",
            both.num_colors == 3 and both.optimal,
        ),
        Finding(
            f"the 4×5 example takes the seeds {seeds[0]} and {seeds[1]}, and comes back exactly",
            seeds == [[1, 1, 0, 0, 1], [0, 0, 1, 1, 0]] and bool(np.array_equal(back, FOUR_BY_FIVE)),
        ),
    ]


def _draw(folder: Path, example: Coloring, both: Coloring) -> None:
    """The example and the arrow, each entry in the color of the product that determines it."""
    for name, coloring in (("4x5 colors", example), ("arrow colors", both)):
        write_text(folder / f"{name}.svg", coloring_svg(coloring) or "")

"""Why matrices are colored: columns that share no row are computed by one product.

First a 4x5 matrix by hand: two products give its eight entries. Then colorings of a dense border, of grids
and of Hessians, and two uses of one line each: the pattern for SciPy's least_squares, and the Hessian of
Rosenbrock's function of 10000 unknowns.
Run: python examples/derivatives/09_coloring_pictures.py [--out DIR]   (with --out six pictures are drawn)
"""

import argparse
import time
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.optimize import least_squares

import symad
from symad.numeric import lower
from symad.sparsity import ORDERS, color

CROSS = [(0, 1), (1, 0)]
"""The steps to the right and down."""


def by_hand() -> None:
    """The 4x5 example: seeds, products, and the places of the entries in them."""
    pattern = [[0, 1, 0, 1, 0], [0, 0, 0, 1, 1], [0, 1, 1, 0, 0], [1, 0, 1, 0, 0]]
    columns, rows = color(pattern, "column"), color(pattern, "row")
    matrix = np.zeros((4, 5), int)
    matrix[np.nonzero(pattern)] = range(1, 9)
    print("A =\n", matrix, sep="")
    print("seeds (one column for each color) =\n", columns.seeds(int), sep="")
    print("A times the seeds =\n", columns.compress(matrix), sep="")
    assert columns.seeds(int).T.tolist() == [[1, 1, 0, 0, 1], [0, 0, 1, 1, 0]]
    assert rows.seeds(int).T.tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    assert np.array_equal(columns.decompress(columns.compress(matrix)).toarray(), matrix)
    print(f"two products instead of five: {columns}")
    print(f"or of rows, instead of four: {rows}")


def grid(n: int, offsets: list[tuple[int, int]]) -> nx.Graph:
    """The points of an n x n grid, joined to their neighbors."""
    graph = nx.Graph()
    graph.add_nodes_from(product(range(n), repeat=2))
    for i, j in product(range(n), repeat=2):
        graph.add_edges_from(
            ((i, j), (i + a, j + b)) for a, b in offsets if 0 <= i + a < n and 0 <= j + b < n
        )
    return graph


def kinds() -> dict[str, object]:
    """The number of products that each kind needs for a few matrices."""
    border = np.eye(12, dtype=bool)
    border[0] = border[:, 0] = True
    five, nine = grid(8, CROSS), grid(8, [*CROSS, (1, 1), (1, -1)])
    matrices = {"arrow 12": border, "5-point 8x8": five, "9-point 8x8": nine}
    print(f"\n{'products':<12} column  row  both sides  star  acyclic")
    made: dict[str, object] = {}
    for name, matrix in matrices.items():
        whole = matrix
        if isinstance(matrix, nx.Graph):
            whole = (nx.to_numpy_array(matrix) + np.eye(len(matrix))).astype(bool)
        found = {kind: color(whole, kind) for kind in ("column", "row", "bidirectional", "star", "acyclic")}
        made |= {f"{name} {kind}": coloring for kind, coloring in found.items()}
        counts = [c.num_colors for c in found.values()]
        print(f"{name:<12} {counts[0]:6d} {counts[1]:4d} {counts[2]:11d} {counts[3]:5d} {counts[4]:8d}")
    assert made["arrow 12 bidirectional"].num_colors == 3
    # symad's orders have NetworkX's signature, so that they also work in its coloring. Columns of a grid
    # share a row if their points are at most two steps apart: the second power of the graph.
    near = nx.power(grid(20, [(0, 1), (1, 0)]), 2)
    ours, theirs = (
        max(nx.greedy_color(near, order).values()) + 1 for order in (ORDERS["saturation"], "largest_first")
    )
    print(f"columns of a 20x20 grid by nx.greedy_color: our order {ours} colors, largest_first {theirs}")
    return made


def for_scipy() -> None:
    """A fit of 400 unknowns: least_squares groups columns by symad's pattern, or takes symad's Jacobian."""
    n = 400
    knots = np.linspace(0, 6, n)
    data = np.sin(knots) + 0.1 * np.random.default_rng(0).normal(size=n)

    def residuals(x):
        return np.concatenate([x - data, 20 * (x[2:] - 2 * x[1:-1] + x[:-2]) + x[1:-1] ** 3 / 50])

    graph = symad.trace(residuals, [(n,)])
    f, pattern = lower(graph), symad.jacobian_sparsity(graph)
    jacobian = lower(symad.jacobian(graph, sparse=True))
    known = least_squares(f, np.zeros(n), jac_sparsity=pattern, method="trf", tr_solver="lsmr")
    exact = least_squares(f, np.zeros(n), jac=jacobian, method="trf", tr_solver="lsmr")
    print(
        f"\nleast_squares, {n} unknowns: cost {known.cost:.6f} with our pattern, "
        f"{exact.cost:.6f} with our Jacobian ({pattern.nnz} of {2 * n * n - 2 * n} entries)"
    )
    assert abs(known.cost - exact.cost) < 1e-4 * exact.cost


def rosenbrock(n: int = 10_000) -> None:
    """The Hessian in one line, and the time of one evaluation."""

    def valley(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    hessian = lower(symad.hessian(symad.trace(valley, [(n,)]), sparse=True))
    x = np.linspace(-1, 1, n)
    hessian(x)
    start = time.process_time()
    for _ in range(100):
        value = hessian(x)
    seconds = (time.process_time() - start) / 100
    print(f"Hessian of Rosenbrock's function, n = {n}: {value.nnz} entries in {seconds * 1e6:.0f} us")
    diagonal = 1200 * x[:-1] ** 2 - 400 * x[1:] + 2 + 200 * (np.arange(n - 1) > 0)
    assert np.allclose(value.diagonal()[:-1], diagonal)


def draw(folder: Path, made: dict[str, object]) -> None:
    """Six pictures."""
    import coloring_pictures

    folder.mkdir(parents=True, exist_ok=True)
    coloring_pictures.four_by_five(folder / "four_by_five.png")
    coloring_pictures.compression(color(coloring_pictures.FOUR_BY_FIVE), path=folder / "compression.png")
    places = [(column, -row) for row, column in product(range(6), repeat=2)]
    both = (CROSS, [*CROSS, (1, 1), (1, -1)])
    five, nine = (nx.to_numpy_array(grid(6, steps)) + np.eye(36) for steps in both)
    coloring_pictures.intersection_graph(color(five), folder / "five_point_graph.png", places)
    coloring_pictures.spy(made["arrow 12 bidirectional"], folder / "arrow.png")
    coloring_pictures.intersection_graph(color(nine, "star"), folder / "nine_point_star.png", places)
    small = color(made["arrow 12 bidirectional"].pattern.to_scipy().toarray()[:7, :7], "bidirectional")
    coloring_pictures.compression(small, path=folder / "arrow_compression.png")


def main() -> None:
    """Run the example, the table, the two uses, and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the pictures")
    options = parser.parse_args()
    by_hand()
    made = kinds()
    for_scipy()
    rosenbrock()
    if options.out:
        draw(options.out, made)


if __name__ == "__main__":
    main()

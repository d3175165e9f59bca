"""Colors and seconds: symad against SciPy's ``group_columns`` and NetworkX's greedy coloring.

For each matrix and kind: the number of colors, the lower bound symad proves, and the median time of
coloring from a scipy.sparse matrix. NetworkX colors the column intersection graph; building that graph
is timed separately, as NetworkX needs it and the others do not. NetworkX has no star, acyclic or
bidirectional coloring. SciPy is given its default order (a random permutation) and the natural one.

Usage: python benchmarks/sparse/bench_coloring.py [--runs 5] [--large] [--check]
"""

import argparse
import platform
import statistics
import time
from functools import partial
from importlib.metadata import version
from itertools import product

import networkx
import numpy as np
from scipy.optimize._numdiff import group_columns
from scipy.sparse import block_array, coo_array, eye_array

from symad.sparsity import color


def stencil(sides, offsets, periodic=False):
    """The boolean matrix of a stencil on a box."""
    size = int(np.prod(sides))
    points = np.stack(np.unravel_index(np.arange(size), sides), axis=1)
    rows, columns = [], []
    for offset in offsets:
        near = points + np.array(offset)
        if periodic:
            near %= np.array(sides)
        inside = ((near >= 0) & (near < np.array(sides))).all(axis=1)
        rows.append(np.flatnonzero(inside))
        columns.append(np.ravel_multi_index(tuple(near[inside].T), sides))
    i, j = np.concatenate(rows), np.concatenate(columns)
    return coo_array((np.ones(len(i), bool), (i, j)), shape=(size, size)).tocsr()


FIVE = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
NINE = list(product((-1, 0, 1), repeat=2))
SEVEN = [(0, 0, 0), *(tuple(s * (a == k) for a in range(3)) for k in range(3) for s in (1, -1))]


def brusselator(n):
    laplacian, identity = stencil((n, n), FIVE, periodic=True), eye_array(n * n, dtype=bool)
    return block_array([[laplacian, identity], [identity, laplacian]]).tocsr()


def bordered_band(n, k, b):
    band = stencil((n,), [(d,) for d in range(-k, k + 1)]).tolil()
    band[:b, :] = True
    band[:, :b] = True
    return band.tocsr()


def random_matrix(n, per_row):
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), per_row)
    columns = rng.integers(0, n, n * per_row)
    return coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(n, n)).tocsr()


def matrices(large):
    side, small = (320, 100) if large else (100, 50)
    yield f"5-point {side}x{side}", stencil((side, side), FIVE)
    yield f"9-point {side}x{side}", stencil((side, side), NINE)
    yield f"7-point {small // 5}^3", stencil((small // 5,) * 3, SEVEN)
    yield "Brusselator 32", brusselator(32)
    yield f"Brusselator {side}", brusselator(side)
    yield "band 5, n = 20000", stencil((20000,), [(d,) for d in range(-5, 6)])
    yield "band 5 and border 5, n = 400", bordered_band(400, 5, 5)
    yield "arrow, n = 300", bordered_band(300, 0, 1)
    yield "random 5000, 6 a row", random_matrix(5000, 6)


TARGETS = {
    ("5-point", "column"): 5,
    ("9-point", "column"): 9,
    ("Brusselator 32", "column"): 10,
    ("arrow", "bidirectional"): 3,
    ("band 5 and border 5", "bidirectional"): 21,
}
"""The counts to reach, for matrices whose names begin like this; those of arrows and borders are optimal."""


def missed(name, kind, count):
    """The targets that a count does not reach."""
    return [
        f"{name}, {kind}: {count} colors, not {most}"
        for (start, of_kind), most in TARGETS.items()
        if name.startswith(start) and kind == of_kind and count > most
    ]


def timed(function, runs):
    """The value of a function and the median of its times."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        value = function()
        taken.append(time.perf_counter() - start)
    return value, statistics.median(taken)


def intersection_graph(matrix):
    product_ = (matrix.T.astype(np.int32) @ matrix.astype(np.int32)).tocoo()
    graph = networkx.empty_graph(matrix.shape[1])
    off = product_.row < product_.col
    graph.add_edges_from(zip(product_.row[off].tolist(), product_.col[off].tolist(), strict=True))
    return graph


def line(who, what, seconds):
    print(f"    {who:<34} {what:<40} {seconds * 1e3:10.1f} ms")


def compare_columns(matrix, runs):
    counts = []
    for who, order in (("symad, everything", None), ("symad, natural order", "natural")):
        found, seconds = timed(lambda order=order: color(matrix, "column", order), runs)
        line(who, f"{found.num_colors} colors (at least {found.lower_bound}), {found.method}", seconds)
        counts.append(found.num_colors)
    natural = np.arange(matrix.shape[1])
    for who, order in (("SciPy, default order", 0), ("SciPy, natural order", natural)):
        groups, seconds = timed(lambda order=order: group_columns(matrix, order), runs)
        line(who, f"{groups.max() + 1} colors", seconds)
    graph, seconds = timed(lambda: intersection_graph(matrix), 1)
    line("NetworkX, building the graph", f"{graph.number_of_edges()} edges", seconds)
    for strategy in ("largest_first", "smallest_last"):
        colors, seconds = timed(lambda s=strategy: networkx.greedy_color(graph, s), min(runs, 3))
        line(f"NetworkX, {strategy}", f"{max(colors.values()) + 1} colors", seconds)
    return counts[0]


def main():
    """Color everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail if a target is missed")
    options = parser.parse_args()
    short = []
    names = ("numpy", "scipy", "networkx")
    libraries = ", ".join(f"{name} {version(name)}" for name in names)
    print(f"Python {platform.python_version()}, {platform.machine()}, {libraries}")
    print(time.strftime("%Y-%m-%d"), f"medians of {options.runs} runs")
    for name, matrix in matrices(options.large):
        print(f"{name}: n = {matrix.shape[0]}, nnz = {matrix.nnz}")
        print("  columns")
        short += missed(name, "column", compare_columns(matrix, options.runs))
        symmetric = (matrix != matrix.T).nnz == 0
        others = ("star", "acyclic", "bidirectional") if symmetric else ("bidirectional",)
        for kind in others:
            found, seconds = timed(partial(color, matrix, kind), min(options.runs, 3))
            bound = f"(at least {found.lower_bound}), {found.method}"
            line(f"symad, {kind}", f"{found.num_colors} colors {bound}", seconds)
            short += missed(name, kind, found.num_colors)
    print("\n".join(short) or "every target is reached")
    if options.check and short:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

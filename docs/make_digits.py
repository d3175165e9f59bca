"""Draws docs/pictures/digits.svg: how many digits ten formulas and their derivatives keep.

Run ``python docs/make_digits.py`` in the root of the repository; it prints the table of docs/rounding.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "benchmarks" / "scalar"))

import bench_lost_bits as bench  # noqa: E402  (a script beside the package)

SHOWN = {
    "2sqrt": "√(x + 1) − √x",
    "2log": "log(x + 1) − log x",
    "2sin": "sin(x + e) − sin x",
    "cos2": "(1 − cos x)/x²",
    "exp2": "eˣ − 2 + e⁻ˣ",
    "quadp": "(−b + √(b² − 4ac))/2a",
    "logs": "(n+1) log(n+1) − n log n − 1",
    "sintan": "(x − sin x)/(x − tan x)",
    "mean exp": "(eˣ − 1)/x",
    "log sigma": "log(1 − 1/(1 + e⁻ˣ))",
}
"""Ten of the formulas of the benchmark, as they are shown."""

GRAY, BEFORE, AFTER = "#808080", "#c8553d", "#2a7f9e"
PER_DIGIT = np.log2(10)


def digits() -> dict[str, list[list[float]]]:
    """For each formula the digits that are right in the mean: value, first, second derivative, by code."""
    made = {
        "SymPy": bench.table(bench.sympy_code, list(SHOWN)),
        "symad": bench.table(bench.symad_code, list(SHOWN)),
    }
    return {name: [[_kept(rows[name][k]) for k in range(3)] for rows in made.values()] for name in SHOWN}


def _kept(lost: list[float]) -> float:
    """The digits that are right in the mean, from the bits lost."""
    return (bench.BITS - float(np.mean(lost))) / PER_DIGIT


def draw(found: dict[str, list[list[float]]], path: Path) -> None:
    """A row for each formula: from the digits of SymPy's code to those of symad's."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "symad", "svg.fonttype": "path", "font.size": 10})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(9.5, 4.2), sharey=True)
    places = np.arange(len(found))[::-1]
    titles = ("value", "first derivatives", "second derivatives")
    for k, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        before, after = ([rows[who][k] for rows in found.values()] for who in (0, 1))
        panel.hlines(places, before, after, color=GRAY, alpha=0.5, linewidth=2)
        panel.plot(before, places, "o", color=BEFORE, label="SymPy diff + lambdify(cse=True)")
        panel.plot(after, places, "o", color=AFTER, label="symad")
        panel.set(title=title, xlim=(-0.5, 16.5), xticks=[0, 4, 8, 12, 16])
        panel.title.set_color(GRAY)
        panel.tick_params(colors=GRAY, length=0)
        panel.grid(axis="x", color=GRAY, alpha=0.25)
        for spine in panel.spines.values():
            spine.set_visible(False)
    panels[0].set_yticks(places, list(SHOWN.values()))
    panels[1].set_xlabel("decimal digits that are right, of 15.95", color=GRAY)
    marks = panels[0].get_legend_handles_labels()
    figure.legend(*marks, ncol=2, loc="upper center", frameon=False, labelcolor=GRAY)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    options: dict[str, Any] = {"transparent": True, "metadata": {"Date": None}}
    figure.savefig(path, **options)


def main() -> None:
    """Draw, and print the table."""
    bench.mpmath.mp.dps = bench.DIGITS
    found = digits()
    print("| formula | value | first | second |\n|---|---|---|---|")
    for name, (before, after) in found.items():
        cells = [f"{a:.1f} → {b:.1f}" for a, b in zip(before, after, strict=True)]
        print(f"| {SHOWN[name]} | {' | '.join(cells)} |")
    draw(found, HERE / "pictures" / "digits.svg")


if __name__ == "__main__":
    main()

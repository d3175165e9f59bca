"""All CPU benchmarks in turn, as one table of ratios and one picture.

Each benchmark runs in a process of its own (and can be run alone: `python benchmarks/arrays/bench_models.py
--help`). Results are written to benchmarks/results/cpu/: a JSON file each, and ratios.png, symad's time over
the best peer's. A benchmark that fails does not end the others: it is named at the end, the picture goes
without it, and the exit status is 1.

Usage: python benchmarks/run_all.py [--quick | --full] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent


def compared(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the cases that JAX or PyTorch took part in: without a peer, ratios are to symad itself."""
    rows: list[dict[str, Any]] = results["rows"]
    with_peers = {r["case"] for r in rows if r["contestant"].startswith(("jax", "torch"))}
    return [r for r in rows if r["case"] in with_peers]


def model_ratios(results: dict[str, Any]) -> list[tuple[str, float]]:
    """The ratios of symad's NumPy and compiled code to the best peer, by model and precision."""
    names = {"symad": "", "symad compiled": " (compiled)"}
    rows = [r for r in compared(results) if r["contestant"] in names]
    return [(f"{r['case']} {r['dtype']}{names[r['contestant']]}", r["ratio"]) for r in rows]


def hessian_ratios(results: dict[str, Any]) -> list[tuple[str, float]]:
    """The ratios of symad to the best peer, by model."""
    return [(r["case"], r["ratio"]) for r in compared(results) if r["contestant"] == "symad"]


def scalar_ratios(results: dict[str, Any]) -> list[tuple[str, float]]:
    """The ratios of symad's compiled forms to CasADi, by expression."""
    found = []
    for row in results["rows"]:
        for form in ("runs", "c"):
            if form in row and "casadi" in row:
                found.append((f"{row['case']} ({form})", row[form][0] / row["casadi"][0]))
    return found


def draw(groups: dict[str, list[tuple[str, float]]], path: Path) -> None:
    """Bars on a logarithmic axis; left of 1 symad is faster."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    height = sum(len(g) for g in groups.values()) * 0.22 + 1.2 * len(groups)
    sizes = [len(g) for g in groups.values()]
    figure, axes = plt.subplots(len(groups), 1, figsize=(8, height), height_ratios=sizes, squeeze=False)
    for axis, (title, rows) in zip(axes[:, 0], groups.items(), strict=True):
        names, ratios = [r[0] for r in rows][::-1], [r[1] for r in rows][::-1]
        colors = ["#2a7f62" if r <= 1 else "#c0504d" for r in ratios]
        axis.barh(names, [r - 1 for r in ratios], left=1, color=colors)
        axis.set_ylim(-0.7, len(rows) - 0.3)
        axis.set_xscale("log")
        axis.set_xlim(min(0.1, min(ratios) / 1.5), max(2.0, 1.2 * max(ratios)))
        axis.set_xticks([0.1, 0.25, 0.5, 1, 2], ["0.1", "0.25", "0.5", "1", "2"])
        axis.minorticks_off()
        axis.axvline(1, color="black", linewidth=0.8)
        axis.tick_params(axis="y", labelsize=8)
        for k, r in enumerate(ratios):
            outside = "left" if r > 1 else "right"
            axis.text(r, k, f" {r:.2f} ", va="center", ha=outside, fontsize=7)
        axis.set_title(title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


PARTS: dict[str, tuple[str, Callable[[dict[str, Any]], list[tuple[str, float]]]]] = {
    "arrays/bench_models.py": (
        "value and gradient of models: time over the best of JAX and PyTorch", model_ratios
    ),
    "arrays/bench_hessians.py": (
        "dense Hessians of models: time over the best of JAX and PyTorch", hessian_ratios
    ),
    "scalar/bench_scalar_peers.py": ("gradients of expressions: time over CasADi", scalar_ratios),
}  # fmt: skip
"""The parts of the table and of the picture: a title, and ratios read from what a benchmark wrote."""

WRITES = {
    "arrays/bench_models.py": "models.json",
    "arrays/bench_hessians.py": "hessians.json",
    "scalar/bench_scalar_peers.py": "scalars.json",
    "scalar/bench_scalar_hessians.py": "scalar_hessians.json",
    "sparse/bench_sparse.py": "sparse.json",
}
"""The files of results, by benchmark."""


def benchmarks(quick: bool, full: bool) -> dict[str, list[str]]:
    """The benchmarks in their order, with their options."""
    return {
        "arrays/bench_models.py": ["--rounds", "8" if quick else "30", *(["--compile"] if full else [])],
        "arrays/bench_hessians.py": ["--rounds", "5" if quick else "15"],
        "scalar/bench_scalar_peers.py": ["--rounds", "20" if quick else "100", *(["--jax"] if full else [])],
        "scalar/bench_scalar.py": ["--limit", "10" if quick else "30"],
        "scalar/bench_scalar_hessians.py": [],
        "sparse/bench_sparse.py": [],
        "arrays/bench_given.py": [],
        "arrays/bench_memory.py": [],
    }


def run_each(wanted: dict[str, list[str]], folder: Path) -> dict[str, int]:
    """Run each benchmark in a process of its own. Returns the exit status of those that fail."""
    failed = {}
    for script, options in wanted.items():
        into = ["--json", str(folder / WRITES[script])] if script in WRITES else []
        status = subprocess.run([sys.executable, str(HERE / script), *options, *into], check=False).returncode
        if status:
            failed[script] = status
    return failed


def table(groups: dict[str, list[tuple[str, float]]]) -> Table:
    """The ratios, a section for each part."""
    made = Table("", "ratio", title="symad over the best peer; below 1 is ahead")
    for rows in groups.values():
        for name, ratio in rows:
            made.add_row(name, f"{ratio:.2f}")
        made.add_section()
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--full", action="store_true", help="also torch.compile and JAX on scalar graphs")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "cpu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = run_each(benchmarks(options.quick, options.full), options.out)
    groups = {
        title: rows
        for script, (title, ratios) in PARTS.items()
        if script not in failed and (rows := ratios(json.loads((options.out / WRITES[script]).read_text())))
    }
    if groups:
        draw(groups, options.out / "ratios.png")
        Console().print(table(groups))
    for script, status in failed.items():
        print(f"failed with exit status {status}: benchmarks/{script}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""All CPU benchmarks in turn, as one table of ratios and one picture.

Each benchmark runs in a process of its own (and can be run alone: `python benchmarks/arrays/bench_models.py
--help`). Results are written to benchmarks/results/cpu/: a JSON file each, and ratios.png, symad's time over
the best peer's.

Usage: python benchmarks/run_all.py [--quick | --full] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent


def run(script: str, *options: str) -> None:
    """Run one benchmark in its own process; its tables are printed to the terminal."""
    subprocess.run([sys.executable, str(HERE / script), *options], check=True)


def model_ratios(results: dict[str, Any]) -> list[tuple[str, float]]:
    """The ratios of symad's NumPy and compiled code to the best peer, by model and precision."""
    names = {"symad": "", "symad compiled": " (compiled)"}
    rows = [r for r in results["rows"] if r["contestant"] in names]
    return [(f"{r['case']} {r['dtype']}{names[r['contestant']]}", r["ratio"]) for r in rows]


def hessian_ratios(results: dict[str, Any]) -> list[tuple[str, float]]:
    """The ratios of symad to the best peer, by model."""
    return [(r["case"], r["ratio"]) for r in results["rows"] if r["contestant"] == "symad"]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--full", action="store_true", help="also torch.compile and JAX on scalar graphs")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "cpu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    models, scalars = options.out / "models.json", options.out / "scalars.json"
    rounds, slow = "8" if options.quick else "30", ["--compile"] if options.full else []
    run("arrays/bench_models.py", "--rounds", rounds, "--json", str(models), *slow)
    hessians = options.out / "hessians.json"
    run("arrays/bench_hessians.py", "--rounds", "5" if options.quick else "15", "--json", str(hessians))
    rounds, slow = "20" if options.quick else "100", ["--jax"] if options.full else []
    run("scalar/bench_scalar_peers.py", "--rounds", rounds, "--json", str(scalars), *slow)
    run("scalar/bench_scalar.py", "--limit", "10" if options.quick else "30")
    run("scalar/bench_scalar_hessians.py", "--json", str(options.out / "scalar_hessians.json"))
    run("sparse/bench_sparse.py", "--json", str(options.out / "sparse.json"))
    run("arrays/bench_given.py")
    run("arrays/bench_memory.py")
    groups = {
        "value and gradient of models: time over the best of JAX and PyTorch": model_ratios(
            json.loads(models.read_text())
        ),
        "dense Hessians of models: time over the best of JAX and PyTorch": hessian_ratios(
            json.loads(hessians.read_text())
        ),
        "gradients of expressions: time over CasADi": scalar_ratios(json.loads(scalars.read_text())),
    }
    draw(groups, options.out / "ratios.png")
    table = Table("", "ratio", title="symad over the best peer; below 1 is ahead")
    for rows in groups.values():
        for name, ratio in rows:
            table.add_row(name, f"{ratio:.2f}")
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()

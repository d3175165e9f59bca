"""Two revisions of symad side by side: does a change make anything slower?

    python benchmarks/before_after.py [ROW ...] [--before 014735b] [--rounds 9] [--json FILE]

The earlier revision is extracted from git into a folder of its own. Two processes, one for each revision,
run the same rows: set-up from the mathematics (trace, differentiate, lower), then calls. The processes take
turns, so that other load on the machine affects both alike; one thread, process CPU time. Both results must
agree to 1e-8 (in single precision 1e-3).

For each row the table gives the milliseconds of a call and of the set-up after the change, with their ratios
to those before; the last line gives geometric means. A ROW is a part of a row's name. Set-up in C is measured
with the compiler's results in the cache, so that only symad's work counts.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tarfile  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SLICE = 0.04
"""Seconds of one turn; a call that takes longer is run once."""

Call = Callable[[], Any]
Row = Callable[[], tuple[float, Call]]
"""Makes the kernel, and returns the seconds of the set-up, and the call."""


# ---- rows, which both processes have --------------------------------------------------------------


def rows() -> dict[str, Row]:
    """All rows by name; the cases come from the benchmarks of the imported revision."""
    import bench_hessians
    import cases
    import model_cases

    import symad

    made: dict[str, Row] = {}
    for name, case in cases.CASES.items():
        for kind in ("gradient", "hessian"):
            if kind == "hessian" and name in ("rosenbrock 1000", "speelpenning 300"):
                continue
            for backend in ("numpy", "c", "runs"):
                made[f"{name}, {kind}, {backend}"] = _scalar(case, kind, backend)
    for name, model in model_cases.CASES.items():
        for dtype in ("float32", "float64"):
            for backend in ("numpy", "c"):
                made[f"{name}, value and gradient, {backend} {dtype}"] = _arrays(
                    model, symad.value_and_gradient, backend, dtype
                )
    for name, dense in bench_hessians.CASES.items():
        for backend in ("numpy", "c"):
            made[f"{name}, dense Hessian, {backend}"] = _arrays(dense, symad.hessian, backend, "float64")
    made["pendulum of 10 links, Jacobian, numpy"] = _pendulum("numpy")
    made["pendulum of 10 links, Jacobian, c"] = _pendulum("c")
    made["rosenbrock 10000, sparse Hessian, numpy"] = _sparse("numpy")
    made["rosenbrock 10000, sparse Hessian, c"] = _sparse("c")
    return made


def _scalar(case: Callable[[], Any], kind: str, backend: str) -> Row:
    def row() -> tuple[float, Call]:
        import symad
        from symad.numeric import lower

        f, xs = case()
        start = time.process_time()
        kernel = lower(getattr(symad, kind)(f, xs), backend=backend, packed=True)
        took = time.process_time() - start
        x = np.random.default_rng(0).uniform(0.5, 1.5, len(xs))
        return took, lambda: kernel(x)

    return row


def _arrays(case: Callable[[], Any], derivative: Callable[..., Any], backend: str, dtype: str) -> Row:
    def row() -> tuple[float, Call]:
        import model_cases

        import symad
        from symad.numeric import lower

        made = case()
        named = isinstance(made.weights, dict)
        weights = list(made.weights.values()) if named else list(made.weights)
        arrays = [np.asarray(a) for a in (*weights, *(made.data.values() if named else made.data))]
        arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
        xp = model_cases.for_symad()
        start = time.process_time()
        graph = symad.trace(lambda *a: made.loss(xp, *a), inputs=[a.shape for a in arrays])
        kernel = lower(derivative(graph, list(graph.inputs[: len(weights)])), backend=backend, dtype=dtype)
        took = time.process_time() - start
        return took, lambda: kernel(*arrays)

    return row


def _pendulum(backend: str) -> Row:
    def row() -> tuple[float, Call]:
        import cases

        import symad
        from symad.numeric import lower

        forcing, states = cases.pendulum(10)
        start = time.process_time()
        graph = symad.jacobian(forcing, states)
        kernel = lower(graph, backend=backend)
        took = time.process_time() - start
        names = [str(name) for name in graph.inputs]  # revisions may order the inputs differently
        values = np.random.default_rng(0).uniform(0.5, 1.5, len(names))
        x = [dict(zip(sorted(names), values, strict=True))[name] for name in names]
        return took, lambda: kernel(*x)

    return row


def _sparse(backend: str) -> Row:
    def row() -> tuple[float, Call]:
        import cases

        import symad
        from symad.numeric import lower

        f, xs = cases.rosenbrock(10_000)
        start = time.process_time()
        kernel = lower(symad.hessian(f, xs, sparse=True), backend=backend, packed=True)
        took = time.process_time() - start
        x = np.random.default_rng(0).uniform(0.5, 1.5, len(xs))
        return took, lambda: kernel(x).data

    return row


# ---- a process of one revision -------------------------------------------------------------------


def serve() -> None:
    """Answer requests, one line of JSON each: the names of the rows, a set-up, or a turn of calls."""
    answers, sys.stdout = sys.stdout, sys.stderr
    held = rows()
    current: Call | None = None
    calls = 1
    for line in sys.stdin:
        asked, name = json.loads(line)
        answer: Any
        try:
            if asked == "rows":
                answer = list(held)
            elif asked == "setup":
                current = None
                took, current = held[name]()
                first = _flat(current())
                start = time.process_time()
                current()
                calls = max(1, int(SLICE / max(time.process_time() - start, 1e-7)))
                answer = [took, len(first), first[:: max(1, len(first) // 500)].tolist()]
            else:
                assert current is not None
                start = time.process_time()
                for _ in range(calls):
                    current()
                answer = (time.process_time() - start) / calls
        except Exception as problem:
            answer = {"failed": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), file=answers, flush=True)


def _flat(value: Any) -> Any:
    """All numbers of a result in one array."""
    parts = value if isinstance(value, (tuple, list)) else [value]
    return np.concatenate(
        [_flat(p) if isinstance(p, (tuple, list)) else np.ravel(np.asarray(p, float)) for p in parts]
    )


class Side:
    """The process of one revision."""

    def __init__(self, checkout: Path) -> None:
        folders = ("", "scalar", "arrays")  # the cases; early revisions have them in one folder
        paths = [str(checkout), *(str(checkout / "benchmarks" / folder) for folder in folders)]
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"},
        )

    def ask(self, what: str, name: str = "") -> Any:
        """The answer to one request."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([what, name]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process of one revision ended; its message stands above")
        return json.loads(line)


# ---- the comparison ------------------------------------------------------------------------------


def compare(before: Side, after: Side, name: str, rounds: int) -> dict[str, Any]:
    """One row: call and set-up after the change, and their ratios to those before; medians of turns."""
    setups: dict[str, list[float]] = {"before": [], "after": []}
    firsts: dict[str, Any] = {}
    for _ in range(3):
        for key, side in (("before", before), ("after", after)):
            answer = side.ask("setup", name)
            if isinstance(answer, dict):
                return {"row": name, "failed": f"{key}: {answer['failed']}"}
            setups[key].append(answer[0])
            firsts[key] = answer[1:]
    (sizes, values) = zip(firsts["before"], firsts["after"], strict=True)
    scale = max(map(abs, values[0]), default=0.0) or 1.0
    loose = 1e-8 if "float32" not in name else 1e-3
    if sizes[0] != sizes[1] or not np.allclose(values[0], values[1], rtol=loose, atol=loose * scale):
        return {"row": name, "failed": "the two revisions give different numbers"}
    turns = [(before.ask("run"), after.ask("run")) for _ in range(rounds)]
    return {
        "row": name,
        "ms": 1e3 * statistics.median(a for _, a in turns),
        "ratio": statistics.median(a / b for b, a in turns),
        "setup_ms": 1e3 * min(setups["after"]),
        "setup_ratio": min(setups["after"]) / min(setups["before"]),
    }


def checkout(revision: str, folder: Path) -> Path:
    """A folder with the files of a revision, from git."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def table(results: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print each row when it is done, then the geometric means."""
    kept = []
    print(f"{'row':58s}{'ms':>10s}{'ratio':>8s}{'set-up ms':>11s}{'ratio':>8s}")
    for result in results:
        kept.append(result)
        if "failed" in result:
            print(f"{result['row']:58s}  {result['failed']}", flush=True)
            continue
        print(
            f"{result['row']:58s}{result['ms']:10.3f}{result['ratio']:8.2f}"
            f"{result['setup_ms']:11.1f}{result['setup_ratio']:8.2f}",
            flush=True,
        )
    good = [r for r in kept if "failed" not in r]
    if good:
        calls, setups = (statistics.geometric_mean(r[k] for r in good) for k in ("ratio", "setup_ratio"))
        print(f"{f'geometric mean of {len(good)} rows':58s}{'':10s}{calls:8.2f}{'':11s}{setups:8.2f}")
    return kept


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--before", default="014735b", help="the earlier git revision; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each side; default: %(default)s")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    with tempfile.TemporaryDirectory() as folder:
        before, after = Side(checkout(given.before, Path(folder))), Side(ROOT)
        wanted = [
            name
            for name in before.ask("rows")
            if not given.rows or any(part.lower() in name.lower() for part in given.rows)
        ]
        missing = set(wanted) - set(after.ask("rows"))
        revision = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
        print(f"before {given.before}, after {revision}; {versions}")
        results = table(compare(before, after, name, given.rounds) for name in wanted if name not in missing)
        for side in (before, after):
            side.process.stdin.close()  # type: ignore[union-attr]
            side.process.wait()
    if given.json:
        machine = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
        told = {"date": time.strftime("%Y-%m-%d"), **machine, "versions": versions, "rounds": given.rounds}
        compared = {"before": given.before, "after": revision, "rows": results}
        given.json.write_text(json.dumps({**told, **compared}, indent=1) + "\n")


if __name__ == "__main__":
    main()

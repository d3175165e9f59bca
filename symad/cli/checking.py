"""``symad check`` and ``symad recheck``: certificates, printed, kept and checked again."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import symad
from symad.cli.codes import OF_STATUS, worst
from symad.cli.models import ModelError, load_models
from symad.graph import Graph
from symad.saving import dumps, loads

FORMAT, VERSION = "symad certificates", 1

STYLES = {"proved": "green", "tested": "green", "refuted": "bold red", "undecided": "yellow"}


@dataclass(frozen=True)
class Result:
    """A model and its certificate."""

    name: str
    graph: Graph
    wrt: tuple[str, ...] | None
    certificate: Any
    seconds: float

    @property
    def status(self) -> str:
        """proved, tested, refuted or undecided."""
        return str(self.certificate.status)


def check(options: Namespace) -> int:
    """Certify the models of a file."""
    wrt = tuple(options.wrt.split(",")) if options.wrt else None
    models = load_models(options.model)
    results = [_certify(name, graph, wrt) for name, graph in models.items()]
    if options.json:
        document = {"format": FORMAT, "version": VERSION, "models": [_as_json(r) for r in results]}
        print(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        _show(results)
    return worst([OF_STATUS[r.status] for r in results])


def _certify(name: str, graph: Graph, wrt: tuple[str, ...] | None) -> Result:
    start = time.perf_counter()
    print(f"checking {name} ({len(graph.nodes)} nodes)", file=sys.stderr)
    certificate = symad.check(graph, wrt)  # type: ignore[attr-defined]
    return Result(name, graph, wrt, certificate, time.perf_counter() - start)


def _show(results: list[Result]) -> None:
    """A table, then what the certificates say of those that are not right beyond doubt."""
    console = Console()
    table = Table(title="Derivatives, every mode against SymPy's", title_justify="left")
    for header in ("model", "nodes", "status", "entries", "chance of error", "seconds"):
        table.add_column(header, justify="left" if header in {"model", "status"} else "right")
    for r in results:
        table.add_row(
            r.name,
            str(len(r.graph.nodes)),
            f"[{STYLES[r.status]}]{r.status}[/]",
            str(len(r.certificate.entries)),
            _chance(r.certificate.bound),
            f"{r.seconds:.2f}",
        )
    console.print(table)
    for r in results:
        if r.status in {"refuted", "undecided"}:
            console.print(f"\n{r.name}:", style="bold")
            console.print(str(r.certificate), markup=False, highlight=False, soft_wrap=True)
    trusted = sorted({str(a) for r in results for a in r.certificate.assumes})
    if trusted:
        console.print("taken on trust: " + "; ".join(trusted), markup=False, highlight=False, soft_wrap=True)


def _chance(bound: Any) -> str:
    if not bound:
        return "0"
    return f"{float(bound):.1e}" if float(bound) > 0 else "< 1e-300"


# ---- certificates to keep ------------------------------------------------------------------------


def _as_json(result: Result) -> dict[str, Any]:
    """Plain data: the graph, what was claimed, and how sure it is."""
    certificate = result.certificate
    return {
        "name": result.name,
        "wrt": result.wrt,
        "status": result.status,
        "chance of error": str(certificate.bound),
        "assumes": [str(a) for a in certificate.assumes],
        "entries": [_entry(e) for e in certificate.entries],
        "text": str(certificate),
        "graph": json.loads(dumps(result.graph)),
    }


def _entry(entry: Any) -> dict[str, Any]:
    witness = getattr(entry, "witness", None)
    return {
        "status": entry.status,
        "claim": str(entry.claim),
        "chance of error": str(entry.bound),
        "witness": None if witness is None else str(witness),
    }


def recheck(options: Namespace) -> int:
    """Check the graphs of a certificate again, and compare every claim."""
    console = Console()
    saved = _read(Path(options.certificate))
    codes, results = [], []
    for model in saved:
        graph = loads(json.dumps(model["graph"]))
        wrt = None if model["wrt"] is None else tuple(map(str, model["wrt"]))
        result = _certify(str(model["name"]), graph, wrt)
        results.append(result)
        codes.append(OF_STATUS[result.status])
        told = {e["claim"]: e["status"] for e in model["entries"]}
        for entry in result.certificate.entries:
            before = told.get(str(entry.claim))
            if before != entry.status:
                console.print(
                    f"{result.name}: {entry.claim}: was {before}, is {entry.status}",
                    markup=False,
                    soft_wrap=True,
                )
    _show(results)
    return worst(codes)


def _read(path: Path) -> list[dict[str, Any]]:
    """The models of a certificate file.

    Raises:
        ModelError: it is none.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        models = document["models"]
        fits = document["format"] == FORMAT and document["version"] == VERSION
        complete = all({"name", "wrt", "entries", "graph"} <= set(m) for m in models)
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = complete = False
    if not (fits and complete):
        raise ModelError(f"{path.name} is no certificate; 'symad check FILE --json' prints one")
    return list(models)

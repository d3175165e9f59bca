"""``symad check`` and ``symad recheck``: certificates, printed, saved and checked again."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

import symad
from symad.cli.console import OF_STATUS, Output, worst
from symad.core.graph import Graph
from symad.core.identifiers import visible
from symad.core.signatures import Traceable
from symad.load_models import ModelError, load_written

if TYPE_CHECKING:
    from symad.verification.certificate.certificate import Certificate

MAX_CLAIMS = 20
"""Claims that `recheck` prints for one certificate."""

FORMAT, VERSION = "symad certificates", 1

STYLES = {
    "proved": "green",
    "tested": "green",
    "measured": "cyan",
    "refuted": "bold red",
    "undecided": "yellow",
}


@dataclass(frozen=True)
class CheckedModel:
    """A model's name and its certificate."""

    name: str
    certificate: Certificate
    seconds: float

    @property
    def status(self) -> str:
        """proved, tested, refuted or undecided."""
        return str(self.certificate.status)


def _timed(certify: Mapping[str, Callable[[], Certificate]]) -> list[CheckedModel]:
    """The certificates of some models; what is at work is told, with its number."""
    made = []
    for k, (name, certified) in enumerate(certify.items(), 1):
        print(f"checking {name}" + f" ({k} of {len(certify)})" * (len(certify) > 1), file=sys.stderr)
        start = time.perf_counter()
        made.append(CheckedModel(name, certified(), time.perf_counter() - start))
    return made


def check(options: Namespace) -> int:
    """Certify the models of a file."""
    wrt = tuple(options.wrt.split(",")) if options.wrt else None
    models = load_written(options.model, options.inputs)
    results = _timed({name: partial(symad.check, graph, wrt) for name, (_, graph) in models.items()})
    if options.coq:
        _write_coq(options.coq, models, results)
    if options.json:
        listed = [
            {"name": r.name, "status": r.status, "certificate": json.loads(r.certificate.to_json())}
            for r in results
        ]
        document = {"format": FORMAT, "version": VERSION, "models": listed}
        print(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        _show(results, "Derivatives, every mode against SymPy's")
    return worst([OF_STATUS[r.status] for r in results])


def _write_coq(path: str, models: dict[str, tuple[Traceable, Graph]], results: list[CheckedModel]) -> None:
    """The certificate of one model as a Coq file, with the model in its original form.

    Raises:
        ModelError: there are several models.
        CoqError: the model has no form in Coq.
    """
    if len(results) > 1:
        raise ModelError(f"--coq is for one model; say which of {', '.join(models)}")
    certificate = results[0].certificate
    given, _ = models[results[0].name]
    assert certificate.model is not None
    written = replace(certificate, model=replace(certificate.model, given=given)).to_coq(path)
    print(f"written: {written} and the library it needs", file=sys.stderr)


def recheck(options: Namespace) -> int:
    """Decide every claim of saved certificates again, from the graphs in them."""
    from symad.display.stated import stated

    saved = _read(Path(options.certificate))
    results = _timed({name: before.recheck for name, before in saved.items()})
    for (name, before), result in zip(saved.items(), results, strict=True):
        told = {entry.name: entry.status for entry in before.entries}
        for entry in result.certificate.entries:
            was = told.get(entry.name, "not claimed")
            if was != entry.status:
                print(f"{name}: {entry.name}: was {was}, is {entry.status}")
    _show(results, "Certificates, established again")
    for r in results:
        claims = stated(r.certificate)
        print(f"what {r.name} claims, as its graphs say:")
        for claim in claims[:MAX_CLAIMS]:
            print(visible(fill(claim, 80, initial_indent="  ", subsequent_indent="    ")))
        if len(claims) > MAX_CLAIMS:
            print(f"  and {len(claims) - MAX_CLAIMS} more")
    return worst([OF_STATUS[r.status] for r in results])


def _read(path: Path) -> dict[str, Certificate]:
    """The certificates of a file by name; a file of `Certificate.to_json` has a single one.

    Raises:
        ModelError: the file contains no certificates.
    """
    from symad.verification.certificate.certificate import Certificate
    from symad.verification.certificate.storage import unique

    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
        if document.get("format") != FORMAT:
            return {path.stem: Certificate.from_json(json.dumps(document))}
        if not document["models"]:
            raise ValueError("it lists no models")
        certificates = [(str(m["name"]), m["certificate"]) for m in document["models"]]
        return {k: Certificate.from_json(json.dumps(c)) for k, c in unique(certificates).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        problem = "it is not JSON" if isinstance(error, json.JSONDecodeError) else error
        raise ModelError(
            f"{path.name} is not a certificate ({problem}); 'symad check FILE --json' prints one"
        ) from None


def _show(results: list[CheckedModel], title: str) -> None:
    """Print a table, then the details of the certificates that are not proved or tested."""
    from symad.verification.certificate.report import trusted_text

    console = Output()
    whole = not console.is_terminal  # a terminal breaks lines at words, a file keeps them
    table = Table(title=title, title_justify="left")
    for header in ("model", "status", "entries", "chance of error", "seconds"):
        table.add_column(header, justify="left" if header in {"model", "status"} else "right")
    for r in results:
        table.add_row(
            escape(r.name),
            f"[{STYLES[r.status]}]{r.status}[/]",
            str(len(r.certificate.entries)),
            _chance(r),
            f"{r.seconds:.2f}",
        )
    console.print(table)
    for r in results:
        if r.status not in {"proved", "tested"}:
            console.print(f"\n{r.name}:", style="bold", markup=False)
            console.print(str(r.certificate), markup=False, highlight=False, soft_wrap=whole)
    trusted = list(dict.fromkeys(str(a) for r in results for a in r.certificate.assumes))
    if trusted:
        text = "taken on trust: " + trusted_text(trusted)
        console.print(text, markup=False, highlight=False)


def _chance(result: CheckedModel) -> str:
    """The bound on the probability of a false answer, of levels that claim one."""
    if result.status not in {"proved", "tested"}:
        return "–"
    bound = result.certificate.bound
    if not bound:
        return "0"
    return f"{float(bound):.1e}" if float(bound) > 0 else "< 1e-300"

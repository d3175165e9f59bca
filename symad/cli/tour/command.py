"""``symad tour``: every model traced, differentiated, checked, lowered and run, one row for each stage."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import symad
from symad.cli.console import OK, REFUTED, Output
from symad.cli.tour.page import write_page
from symad.cli.tour.runner import STEPS, Outcome, run_stage
from symad.cli.tour.stage import Finding, Stage
from symad.cli.tour.stages import all_stages
from symad.core.identifiers import counted
from symad.load_models import ModelError
from symad.saving.atomic_files import write_text

if TYPE_CHECKING:
    import numpy as np

    from symad.cli.console import Plain


# ---- outcomes of the tour saved in a file, so that an interrupted tour can continue --------------


NAME = "tour.json"
FORMAT = "symad tour"


def keep(outcomes: list[Outcome], folder: Path) -> None:
    """Write the outcomes so far."""
    rows = [{**asdict(o), "stage": o.stage.name} for o in outcomes]
    document = {"format": FORMAT, "symad": symad.__version__, "stages": rows}
    write_text(folder / NAME, json.dumps(document, indent=1, ensure_ascii=False, default=_plain))


def _plain(value: np.generic) -> object:
    """A NumPy scalar as Python's own."""
    return value.item()


def kept(folder: Path, stages: dict[str, Stage]) -> dict[str, Outcome]:
    """The successful stages of an earlier tour, by name; failed ones are run again.

    Raises:
        ModelError: the file is not one of a tour, or is of another version.
    """
    path = folder / NAME
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        found = [_outcome(row, stages) for row in document["stages"] if row["stage"] in stages]
    except (ValueError, KeyError, TypeError) as problem:
        raise ModelError(f"{path} contains no tour that can be resumed ({problem})") from problem
    if document["symad"] != symad.__version__:
        raise ModelError(f"{path} is of symad {document['symad']}, this is {symad.__version__}: start anew")
    return {o.stage.name: o for o in found if o.ok and not o.skipped}


def _outcome(row: dict[str, Any], stages: dict[str, Stage]) -> Outcome:
    findings = [Finding(str(f["text"]), bool(f["ok"])) for f in row["findings"]]
    return Outcome(**row | {"stage": stages[row["stage"]], "findings": findings})


PLAIN: Plain = {"markup": False, "highlight": False, "soft_wrap": True}

QUICK, WHOLE = "a minute", "seven minutes"
"""How long a tour takes."""

COLUMNS = """\
nodes  operations, inputs and numbers in the model's graph, each existing once
modes  ways of differentiating that were run: pushforward, Dual numbers, both
       gradients or Jacobians, and all four Hessians (Hessian-vector products
       where Hessians are large)
apart  the largest relative difference between any two of them
check  the certificate's status: proved or tested against SymPy's derivative
lines  of the NumPy file that computes the model and its gradient
"""


def run(options: Namespace) -> int:
    """Run stages, show progress, then print a table and the findings."""
    stages = all_stages()
    console = Output()
    if options.list:
        for stage in stages.values():
            console.print(f"{stage.name:16} {stage.about}", **PLAIN)
        return OK
    chosen = _chosen(options.stages, stages, options.quick)
    out = _folder(options)
    known = kept(out, stages) if options.resume and out is not None else {}
    if not options.stages:
        console.print(f"{counted(len(chosen), 'stage')}, about {QUICK if options.quick else WHOLE}", **PLAIN)
    outcomes = _run_all(chosen, out, known, console)
    _show(outcomes, console)
    if out is not None:
        console.print(f"\npictures, graphs and tables: {out}", **PLAIN)
    if out is not None and options.html:
        console.print(f"all of it on a page: {write_page(outcomes, _summary(outcomes), out)}", **PLAIN)
    return OK if all(o.ok for o in outcomes) else REFUTED


def _folder(options: Namespace) -> Path | None:
    """The folder for the files of the tour; it is made if it does not exist."""
    if options.resume and not options.out:
        raise ModelError("--resume goes on where a tour with --out DIR stopped; name its folder with --out")
    name = options.out or ("symad-tour" if options.html else None)
    if name is None:
        return None
    out = Path(name)
    out.mkdir(parents=True, exist_ok=True)
    return out


def _chosen(names: list[str], stages: dict[str, Stage], quick: bool) -> list[Stage]:
    unknown = [name for name in names if name not in stages]
    if unknown:
        raise ModelError(f"there is no stage {unknown[0]!r}; the stages: {', '.join(stages)}")
    if names:
        return [stages[name] for name in names]
    return [stage for stage in stages.values() if stage.quick or not quick]


def _run_all(
    chosen: list[Stage], out: Path | None, known: dict[str, Outcome], console: Console
) -> list[Outcome]:
    """Run the stages without a result; results are saved after each stage."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    outcomes: list[Outcome] = []
    shown = console.is_terminal or console.is_jupyter  # elsewhere nobody sees it, but it would be drawn
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("tour", total=len(chosen) * len(STEPS))
        for position, stage in enumerate(chosen):

            def step(name: str, position: int = position, stage: Stage = stage) -> None:
                done = position * len(STEPS) + STEPS.index(name)
                progress.update(task, description=f"{stage.name}: {name}", completed=done)

            if not shown:
                console.print(f"{position + 1} of {len(chosen)}  {stage.name}: ", **PLAIN, end="")
                console.file.flush()
            outcomes.append(known.get(stage.name) or run_stage(stage, out, step))
            if not shown:
                _, *_, seconds, verdict = _cells(outcomes[-1])
                console.print(f"{verdict}, {seconds}")
            if out is not None:
                keep([*outcomes, *(o for o in known.values() if o not in outcomes)], out)
    return outcomes


def _show(outcomes: list[Outcome], console: Console) -> None:
    table = Table(title="symad tour", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    for header in ("nodes", "modes", "apart", "check", "lines", "time", ""):
        table.add_column(header, justify="right" if header else "left", no_wrap=True)
    for o in outcomes:
        table.add_row(o.stage.name, *_cells(o))
    console.print(table)
    console.print(_summary(outcomes), **PLAIN)
    console.print(COLUMNS, **PLAIN)
    for o in outcomes:
        _tell(o, console, {**PLAIN, "soft_wrap": not console.is_terminal})


def _summary(outcomes: list[Outcome]) -> str:
    """The number of stages, their results, and their time."""
    skipped = sum(bool(o.skipped) for o in outcomes)
    failed = [o.stage.name for o in outcomes if not o.ok]
    words = [f"{counted(len(outcomes), 'stage')} in {sum(o.seconds for o in outcomes):.0f} s"]
    words += [f"{skipped} skipped"] if skipped else []
    words += [f"failed: {', '.join(failed)}"] if failed else ["none failed"]
    return "; ".join(words) + "\n"


def _cells(o: Outcome) -> tuple[str, ...]:
    verdict = "[yellow]skipped[/]" if o.skipped else "[green]ok[/]" if o.ok else "[bold red]FAILED[/]"
    apart = f"{o.difference:.0e}" if o.modes else ""
    lines = str(o.lines) if o.lines else ""
    status = f"[yellow]{o.status}[/]" if o.doubts else o.status
    return (str(o.nodes), str(o.modes), apart, status, lines, f"{o.seconds:.1f} s", verdict)


def _tell(o: Outcome, console: Console, plain: Plain) -> None:
    """Print the subject of a stage, its findings, and its failures."""
    console.print(f"{o.stage.name}: {o.stage.about}", style="bold", **plain)
    if o.skipped:
        console.print(f"  skipped: {o.skipped}", **plain)
    for finding in o.findings:
        mark = " " if finding.ok else "✗"
        style = "" if finding.ok else "red"
        console.print(f" {mark} {finding.text}", style=style, **plain)
    for doubt in o.doubts:
        console.print(f" ? {doubt}", style="yellow", **plain)
    for failure in o.failures:
        console.print(f" ✗ {failure}", style="red", **plain)

"""``symad tour``: every model traced, differentiated, checked, lowered and run, one row for each stage."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from symad.cli.console import Output
from symad.cli.exit_codes import OK, REFUTED
from symad.cli.tour.kept_outcomes import keep, kept
from symad.cli.tour.page import write_page
from symad.cli.tour.runner import STEPS, Outcome, run_stage
from symad.cli.tour.stage import Stage
from symad.cli.tour.stages import all_stages
from symad.load_models import ModelError

if TYPE_CHECKING:
    from symad.cli.console import Plain

PLAIN: Plain = {"markup": False, "highlight": False, "soft_wrap": True}

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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    outcomes: list[Outcome] = []
    shown = console.is_terminal or console.is_jupyter  # elsewhere nobody sees it, but it would be drawn
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("tour", total=len(chosen) * len(STEPS))
        for position, stage in enumerate(chosen):

            def step(name: str, position: int = position, stage: Stage = stage) -> None:
                done = position * len(STEPS) + STEPS.index(name)
                progress.update(task, description=f"{stage.name}: {name}", completed=done)

            outcomes.append(known.get(stage.name) or run_stage(stage, out, step))
            if not shown:
                _, *_, seconds, verdict = _cells(outcomes[-1])
                console.print(f"{position + 1} of {len(chosen)}  {stage.name}: {verdict}, {seconds}")
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
    count = "1 stage" if len(outcomes) == 1 else f"{len(outcomes)} stages"
    words = [f"{count} in {sum(o.seconds for o in outcomes):.0f} s"]
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

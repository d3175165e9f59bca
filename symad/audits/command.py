"""``symad audit``: the claims of libraries about values and derivatives, as a table."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from html import escape
from pathlib import Path

from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

import symad
from symad.audits.claims import Row
from symad.audits.running import MODULES, audit, check_name, summary, version_of
from symad.cli.console import OK, REFUTED, UNDECIDED, Output, Plain
from symad.cli.parser import EXIT_CODES, Commands, command
from symad.cli.tour.page import STYLE
from symad.load_models import ModelError
from symad.saving.atomic_files import write_text

STYLES = {
    "proved": "green", "tested": "green", "measured": "green",
    "refuted": "bold red", "undecided": "yellow", "failed": "yellow",
}  # fmt: skip

PLAIN: Plain = {"markup": False, "highlight": False}


def add_command(commands: Commands) -> None:
    """Adds the command, with its help."""
    text = f"""\
The values and derivatives of libraries are compared with formulas: statsmodels, scikit-learn,
torch, jax, scipy and autograd, if they are installed. A Python file may contain claims of its own, in
groups or one by one, and autograd functions of PyTorch whose class has an attribute formula:

    # claims.py
    import sympy, symad.audits
    from mylibrary import loss_slope

    @symad.audits.group("mylibrary")
    def losses():
        x = sympy.Symbol("x", real=True)
        formula = sympy.log(sympy.cosh(x))
        yield symad.audits.Claim("slope", "gradient", formula, loss_slope)

NAME is such a group, claim or class.

examples:
  symad audit statsmodels                 one package
  symad audit --all --html audit.html     all of them, and a page
  symad audit claims.py --json            a file of yours; it is run
  symad audit claims.py:losses            one group, claim or class of it

{EXIT_CODES}"""
    parser = command(commands, "audit", "compare what libraries ship with formulas", text, run)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE|FILE[:NAME]", help="packages, or files")
    parser.add_argument("--all", action="store_true", help="all packages for which symad has claims")
    parser.add_argument("--verbose", action="store_true", help="show every claim, also those that hold")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--html", metavar="OUT.html", help="write a page")
    parser.add_argument("--seconds", type=float, default=120.0, help="the time limit for one claim (120)")


def run(options: Namespace) -> int:
    """Audit packages and files; the exit code is 1 if a claim is refuted, 3 if one is undecided."""
    names = list(MODULES) if options.all else options.packages
    if not names:
        raise ModelError(f"name a package or a file, or say --all; symad knows {', '.join(MODULES)}")
    for name in names:
        check_name(name)
    console = Output(stderr=options.json)
    rows: list[Row] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = console.is_terminal or console.is_jupyter
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        for name in names:
            task = progress.add_task(name, total=None)

            def report(row: Row, place: str, task: TaskID = task, name: str = name) -> None:
                progress.update(task, description=f"{name}, group {place}: {row.target}")
                if not shown:
                    console.print(f"{name}, group {place}: {row.target} {row.verdict}", **PLAIN)

            rows += audit(name, report, options.seconds)
            progress.remove_task(task)
    versions = {name: version_of(name) for name in names if name in MODULES}
    if options.json:
        document = {"symad": symad.__version__, "versions": versions, "rows": [asdict(r) for r in rows]}
        print(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        _show(rows, versions, console, options.verbose)
    if options.html:
        write_text(Path(options.html), _page(rows, versions))
        console.print(f"the table: {options.html}", **PLAIN)
    verdicts = summary(rows)
    return REFUTED if "refuted" in verdicts else UNDECIDED if {"undecided", "failed"} & set(verdicts) else OK


def _show(rows: list[Row], versions: dict[str, str], console: Output, verbose: bool) -> None:
    """Print the numbers of claims that hold, and the details of those that do not."""
    table = Table(title="symad audit", title_justify="left")
    verdicts = [v for v in STYLES if v in summary(rows)]
    table.add_column("package")
    for verdict in verdicts:
        table.add_column(verdict, justify="right", style=STYLES[verdict])
    for package in dict.fromkeys(row.package for row in rows):
        counts = summary(row for row in rows if row.package == package)
        label = f"{package} {versions.get(package, '')}".strip()
        table.add_row(label, *(str(counts.get(v, "")) for v in verdicts))
    console.print(table)
    for row in rows:
        good = row.verdict in ("proved", "tested", "measured")
        if not good or verbose:
            console.print(f"{row.package} {row.target}: {row.claim}", style="bold", **PLAIN)
            console.print(f"  {row.verdict}", style=STYLES[row.verdict], **PLAIN)
            for line in details(row):
                console.print(f"  {line}", **PLAIN)


def details(row: Row) -> list[str]:
    """The mistake, the point at which a claim fails, the error, its confirmation, and what is known of it."""
    lines = [row.mistake] if row.mistake else []
    if row.where:
        off = f", off by {row.error} relative" if row.error else ""
        lines.append(f"at {row.where}: {row.found} instead of {row.expected}{off}")
    if row.confirmed:
        lines.append(f"confirmed by 50-digit differentiation of the formula: {row.confirmed}")
    return lines + ([row.note] if row.note else [])


def _page(rows: list[Row], versions: dict[str, str]) -> str:
    """The table as a standalone page."""
    told = ", ".join(f"{name} {number}" for name, number in versions.items())
    kinds = {"refuted": "bad", "undecided": "doubt", "failed": "doubt"}
    body = "\n".join(
        f"<tr><td>{escape(row.package)}<td>{escape(row.target)}<td>{escape(row.claim)}"
        f"<td class={kinds.get(row.verdict, 'good')}>{escape(row.verdict)}"
        f"<td class=why>{'<br>'.join(map(escape, details(row)))}"
        for row in sorted(rows, key=lambda row: (row.verdict not in kinds, row.package))
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>symad audit</title><style>{STYLE} td {{ text-align: left; }} .why {{ white-space: normal; }}"
        f"</style><h1>symad audit</h1><p>symad {escape(symad.__version__)}; {escape(told)}</p>"
        "<div class=scroll><table><tr><th>package<th>target<th>claim<th>verdict<th>where, and what is known"
        f"{body}</table></div>\n"
    )

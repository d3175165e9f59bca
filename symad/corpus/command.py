"""``symad corpus``: every verdict of the corpus, established anew."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from rich.table import Table

from symad.cli.console import OK, REFUTED, Output, Plain
from symad.cli.parser import EXIT_CODES, Commands, command
from symad.corpus import load
from symad.errors import SymadError

PLAIN: Plain = {"markup": False, "highlight": False}


def add_command(commands: Commands) -> None:
    """Adds the command, with its help."""
    text = f"""\
Correct and wrong derivatives from papers and libraries, with their sources: each verdict is
established anew. The data are the files of symad/corpus.

examples:
  symad corpus                       all entries
  symad corpus casadi --verbose      some of them, with source and witness

{EXIT_CODES}"""
    title = "right and wrong derivatives from papers and libraries"
    parser = command(commands, "corpus", title, text, run)
    parser.add_argument("text", metavar="TEXT", nargs="?", default="", help="a part of a name or source")
    parser.add_argument("--verbose", action="store_true", help="show source, claim and witness of each")


def run(options: Namespace) -> int:
    """Establish all entries, or those whose name contains a text; the exit code is 1 if a verdict differs."""
    console = Output()
    entries = [e for e in load() if options.text.lower() in f"{e.name} {e.source}".lower()]
    if not entries:
        raise SymadError(f"no name or source in the corpus has {options.text!r}; 'symad corpus' shows all")
    table = Table(title=f"symad corpus: {len(entries)} derivatives", title_justify="left")
    for title in ("derivative", "stated", "established"):
        table.add_column(title)
    differ = 0
    for entry in entries:
        certificate = entry.establish()
        good = entry.holds(certificate)
        differ += not good
        table.add_row(entry.name, entry.verdict, certificate.status, style=None if good else "bold red")
        if options.verbose:
            _tell(entry, console)
    console.print(table)
    console.print(f"{len(entries) - differ} of {len(entries)} as stated", **PLAIN)
    return REFUTED if differ else OK


def _tell(entry: Any, console: Output) -> None:
    """Print an entry with its source, its mistake, and the point that shows it."""
    console.print(f"{entry.name}: {entry.reads}", style="bold", **PLAIN)
    for line in (entry.source, entry.url, entry.about):
        if line:
            console.print(f"  {line}", **PLAIN)
    if entry.witness is not None:
        at = ", ".join(f"{name} = {value}" for name, value in entry.witness.point.items())
        console.print(f"  at {at}: {entry.witness.true}, claimed {entry.witness.claimed}", **PLAIN)

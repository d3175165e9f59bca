"""The tour as a page: a table, the findings of each stage, and its pictures."""

from __future__ import annotations

from html import escape
from pathlib import Path
from urllib.parse import quote

import symad
from symad.cli.tour.runner import Outcome
from symad.saving.atomic_files import write_text

STYLE = """
:root { color-scheme: light dark; --line: #8886; --good: #1a7f37; --bad: #c62828; --doubt: #9a6700; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
th, td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); } .doubt { color: var(--doubt); }
img { max-width: 100%; background: white; border: 1px solid var(--line); margin: .4rem 0; }
@media (prefers-color-scheme: dark) { img { filter: invert(.9) hue-rotate(180deg); } }
h2 { margin: 2.2rem 0 .3rem; }
"""


def write_page(outcomes: list[Outcome], summary: str, folder: Path) -> Path:
    """Write ``index.html`` into the folder with the pictures of the stages, which it shows."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>symad tour</title><style>{STYLE}</style>",
        f"<h1>symad tour</h1><p>symad {escape(symad.__version__)}: {escape(summary)}</p>",
        "<div class=scroll><table><tr><th>stage<th>nodes<th>modes<th>apart<th>check<th>lines<th>time<th>",
        *map(_row, outcomes),
        "</table></div>",
        *(_section(o, folder) for o in outcomes),
    ]
    path = folder / "index.html"
    write_text(path, "\n".join(parts) + "\n")
    return path


def _row(o: Outcome) -> str:
    kind, word = ("doubt", "skipped") if o.skipped else ("good", "ok") if o.ok else ("bad", "FAILED")
    apart = f"{o.difference:.0e}" if o.modes else ""
    name = escape(o.stage.name)
    cells = (o.nodes, o.modes, apart, escape(o.status), o.lines or "", f"{o.seconds:.1f} s")
    return (
        f"<tr><td><a href='#{quote(o.stage.name)}'>{name}</a>"
        + "".join(f"<td>{cell}" for cell in cells)
        + f"<td class={kind}>{word}"
    )


def _section(o: Outcome, folder: Path) -> str:
    """The subject of a stage, its findings, and the pictures whose names begin with its own."""
    lines = [("", f.text) if f.ok else ("bad", f"✗ {f.text}") for f in o.findings]
    lines += [("doubt", f"? {doubt}") for doubt in o.doubts] + [("bad", f"✗ {text}") for text in o.failures]
    if o.skipped:
        lines.append(("doubt", f"skipped: {o.skipped}"))
    told = "".join(f"<p class='{kind}'>{escape(text)}</p>" for kind, text in lines)
    name = o.stage.name
    shown = [path for path in o.pictures if (folder / path).exists()]
    images = "".join(f"<img loading=lazy alt='{escape(path)}' src='{quote(path)}'>" for path in shown)
    return f"<h2 id='{quote(name)}'>{escape(name)}</h2><p><em>{escape(o.stage.about)}</em></p>{told}{images}"

"""Certificates as text, Markdown and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from math import log2
from textwrap import fill, wrap

from symad.core.identifiers import visible, without_tags
from symad.verification.certificate.certificate import (
    CHECKED,
    GIVEN,
    METHODS,
    NOT_COMPARED,
    STATUSES,
    Certificate,
    Entry,
    Loss,
)
from symad.verification.certificate.witness import place_of
from symad.verification.terms.discontinuities import is_jump

WIDTH = 80
"""Columns of a terminal: longer lines go on below, broken at words."""

MIN_COLUMN = 23
"""The width below which names and claims do not shrink: all five columns fit a terminal then."""

HANGING = re.compile(r" *(?:(?:at|expected|found) +)?")
"""What the continuation of a line stands below: its indentation and a label."""

HEADERS = ("output", "status", "entries", "bound", "claim")

MAX_SHOWN_FAULTS = 8
"""The maximum number of refuted and undecided entries that are shown; the others are counted."""

MAX_ALIKE = 8
"""The maximum number of rows that are shown where they differ in the name of the output alone."""

MAX_SHOWN_LOSSES = 6
"""The maximum number of losses of digits that are shown."""


@dataclass(frozen=True)
class Line:
    """The entries of one output that have one status and one claim."""

    name: str
    status: str
    count: int
    bound: float
    claim: str


def lines_of(certificate: Certificate) -> list[Line]:
    """Entries grouped by output, status and claim, in order."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in certificate.entries:
        groups.setdefault((entry.name, entry.status, entry.claim), []).append(entry)
    return [
        Line(name, status, len(entries), max(e.bound for e in entries), claim)
        for (name, status, claim), entries in groups.items()
    ]


def bound_text(status: str, bound: float) -> str:
    """A bound as a power of two."""
    if status in ("proved", "refuted", "measured") or bound == 0:
        return ""
    return "1" if bound >= 1 else f"2^{log2(bound):.0f}"


def headline(certificate: Certificate) -> str:
    """The title, the status, and the bound."""
    if (given := given_text(certificate)) is not None:
        return f"{certificate.title}: MEASURED ({given})"
    bound = bound_text(certificate.status, certificate.bound)
    count = f"{len(certificate.entries_of(certificate.status))} of {len(certificate.entries)} entries"
    forms = " and ".join(assumed_forms(certificate))
    alone = f"; nothing independent of {forms} was compared" if forms else ""
    tail = {
        "proved": f"exact: no probability of error{alone}",
        "tested": (f"probability of a false 'equal' below {bound}" if bound else "by exact normal forms")
        + alone,
        "measured": measured_text(certificate),
        "refuted": f"{count} differ{mistake_text(certificate)}",
        "undecided": f"{count} not decided",
    }[certificate.status]
    return f"{certificate.title}: {certificate.status.upper()} ({tail})"


def assumed_forms(certificate: Certificate) -> list[str]:
    """The forms of derivatives that others are compared with, and nothing shows to be right."""
    alone = {e.name for e in certificate.entries if any(NOT_COMPARED in a for a in e.assumes)}
    return list(dict.fromkeys(c.left_name for c in certificate.comparisons if not alone.isdisjoint(c.names)))


def given_text(certificate: Certificate) -> str | None:
    """What is known but for the rules of users; None where these are not all that is measured."""
    rules = [e for e in certificate.entries if e.status == "measured" and e.reason.startswith(GIVEN)]
    rest = [e.status for e in certificate.entries if e not in rules]
    if certificate.status != "measured" or not rest or "measured" in rest:
        return None
    reasons = ", ".join(dict.fromkeys(e.reason for e in rules))
    return f"{min(rest, key=STATUSES.index)}, {reasons}"


def mistake_text(certificate: Certificate) -> str:
    """The name of the mistake, if all entries that differ have the same one."""
    names = {e.blame.mistake if e.blame else "" for e in certificate.entries_of("refuted")}
    name = names.pop() if len(names) == 1 else ""
    return f": {name}" if name else ""


def measured_text(certificate: Certificate) -> str:
    """What was tried, and what it would have shown."""
    entries = certificate.entries_of("measured")
    seen = [e.measured["would have seen"] for e in entries if e.measured]
    parts = [f"an error of {max(seen):.1g} would have been seen"] if seen else []
    parts += dict.fromkeys(e.reason for e in entries if e.reason)
    lost = any(loss.kind == "ordinary" for loss in certificate.losses)
    first = "agrees but for digits and values lost, as below" if lost else "agrees wherever it was tried"
    return "; ".join([*[first] * bool(seen), *parts])


def as_text(certificate: Certificate) -> str:
    """Aligned columns for a terminal."""
    head, rows = table_of(certificate)
    parts = [headline(certificate), *_table(head, _without_repeats(rows))]
    parts.extend(_faults(certificate))
    parts.extend(losses_text(certificate))
    if certificate.assumes:
        parts.append("trusted: " + trusted_text(certificate.assumes))
    parts.extend(certificate.notes)
    parts.extend(boundaries_text(certificate))
    parts.extend(checker_text(certificate))
    if certificate.primes:
        steps = f"{certificate.steps} steps, " if certificate.steps else ""
        parts.append(f"seed {certificate.seed}, {steps}{certificate.seconds:.2f} s")
    return visible(fitted("\n".join(parts)))


def table_of(certificate: Certificate) -> tuple[Sequence[str], list[Sequence[str]]]:
    """The headers and the rows of a certificate's table; bounds only where an entry has one."""
    forms = (name.removeprefix("the ") for name in assumed_forms(certificate))
    assumed = [Line(name, "assumed", 0, 0.0, "what the others are compared with") for name in forms]
    lines = [*assumed, *lines_of(certificate)]
    bounds = [bound_text(line.status, line.bound) for line in lines]
    rows = [(n.name, n.status, str(n.count or ""), b, n.claim) for n, b in zip(lines, bounds, strict=True)]
    kept = [0, 1, 2, *([3] if any(bounds) else []), 4]
    return [HEADERS[k] for k in kept], [[row[k] for k in kept] for row in rows]


def fitted(text: str) -> str:
    """Lines of at most 80 columns; what goes on stands below the text of its line, or is indented."""
    made = []
    for line in text.splitlines():
        start = HANGING.match(line)[0]  # type: ignore[index]  # it matches the empty text
        rest = " " * (len(start) + (0 if start.strip() else 2))
        wide = len(line) > WIDTH
        made.append(fill(line, WIDTH, subsequent_indent=rest, break_on_hyphens=False) if wide else line)
    return "\n".join(made)


def checker_text(certificate: Certificate) -> list[str]:
    """What of the proved entries the checker replays."""
    proved = certificate.entries_of("proved")
    if not proved or not certificate.comparisons:  # rules of splitting, say, compare no graphs
        return []
    return [f"the checker replays {certificate.proof_steps} steps: all proved entries"]


def boundaries_text(certificate: Certificate) -> list[str]:
    """At which points two sides that are called equal may differ, where they have such points."""
    equal = any(e.status in ("proved", "tested") for e in certificate.entries)
    sides = (side for c in certificate.comparisons for side in (c.left, c.right))
    if not equal or not any(is_jump(node) for side in sides for node in side.nodes if node.args):
        return []
    return ["not compared: ties and boundaries of branches"]


def trusted_text(assumes: Sequence[str]) -> str:
    """What is trusted, with the derivatives of functions in one clause."""
    head, tail = "the derivative of ", CHECKED
    names = [
        a.removeprefix(head).removesuffix(tail) for a in assumes if a.startswith(head) and a.endswith(tail)
    ]
    rest = [a for a in assumes if not (a.startswith(head) and a.endswith(tail))]
    if len(names) == 1:
        rest.insert(1, f"{head}{names[0]}{tail}")
    elif names:
        rest.insert(1, f"the derivatives of {', '.join(names)}{tail}")
    return "; ".join(rest)


def _without_repeats(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The rows; of many that differ in the name of the output alone the first and the last."""
    made: list[Sequence[str]] = []
    for _, group in groupby(rows, key=lambda row: row[1:]):
        alike = list(group)
        if len(alike) > MAX_ALIKE:
            between = f"... {len(alike) - 2} more, to"
            alike = [alike[0], (between, *["" for _ in alike[0][1:]]), alike[-1]]
        made += alike
    return made


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns; a claim that all outputs share stands once below, long names and claims go on."""
    *columns, claims = zip(head, *rows, strict=True)
    alike = set(claims[1:]) if len(rows) > 1 else set()
    columns += [] if len(alike) == 1 else [claims]
    widths = [max(map(len, column)) for column in columns]
    for k in (-1, 0):
        over = 2 * len(widths) + sum(widths) - WIDTH
        widths[k] = max(min(widths[k], MIN_COLUMN), widths[k] - max(over, 0))
    made = []
    for row in zip(*columns, strict=True):
        cells = [wrap(c, w, break_on_hyphens=False) for c, w in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            made.append("  " + "  ".join(map(str.ljust, parts, widths)).rstrip())
    return made + [f"  claim of all: {claim}" for claim in alike if len(alike) == 1]


def _faults(certificate: Certificate) -> list[str]:
    """What is wrong, or not known, entry by entry; one reason of several that are undecided stands once."""
    found = [e for e in certificate.entries if e.status in ("refuted", "undecided")]
    groups: dict[str | int, list[Entry]] = {}
    for k, entry in enumerate(found):
        groups.setdefault(entry.reason if entry.status == "undecided" else k, []).append(entry)
    parts = [fault_text(*group) for group in groups.values()]
    more = len(parts) - MAX_SHOWN_FAULTS
    return [*parts[:MAX_SHOWN_FAULTS], *([f"... and {more} more"] if more > 0 else [])]


def fault_text(entry: Entry, *others: Entry) -> str:
    """One refuted entry, or undecided ones for one reason."""
    if entry.status == "undecided":
        labels = [e.label for e in (entry, *others)]
        names = ", ".join(labels if len(labels) <= MAX_ALIKE else [labels[0], "...", labels[-1]])
        return fitted(f"{names} {'are' if others else 'is'} undecided: {entry.reason}")
    element = entry.witness.index if entry.witness is not None and not entry.index else ()
    rows = [
        f"{entry.label}{list(element) if element else ''} is wrong"
        + (f": {entry.blame.mistake}" if entry.blame and entry.blame.mistake else "")
    ]
    if entry.witness is not None:
        rows.append(f"    at       {place_of(entry.witness.point)}")
        rows.append(f"    expected {entry.witness.left}")
        rows.append(f"    found    {entry.witness.right}")
    if entry.blame is not None and entry.blame.expected:
        rows.append("    the smallest part that differs:")
        rows.append(f"      expected {entry.blame.expected}")
        rows.append(f"      found    {entry.blame.found}")
    if entry.reason:
        rows.append(f"    {entry.reason}")
    return fitted("\n".join(rows))


KINDS = {
    "ordinary": "a point of ordinary size", "far": "far from ordinary sizes", "sampled": "a drawn point",
    "turning": "beside a boundary", "directions": "a special direction",
}  # fmt: skip
"""What points of losses are called where one word does not say it."""

DRAWN = (*KINDS, "zeros among others")
"""The kinds of points that are tried in any case, also with ``hostile=False``."""

RAISED = "raised "
"""The beginning of the keyword of a loss that is an exception."""


def losses_text(certificate: Certificate) -> list[str]:
    """Where a program loses digits, raises or has no value: the worst point of each output and kind."""
    worst: dict[tuple[str, str, str], Loss] = {}
    told = [e.reason for e in certificate.entries_of("undecided")]
    for loss in certificate.losses:
        if loss.word.startswith(RAISED) and any(loss.word in reason for reason in told):
            continue
        key = loss.name, loss.kind, loss.word
        if key not in worst or loss.digits > worst[key].digits:
            worst[key] = loss
    if not worst:
        return []
    extreme = any(loss.kind not in DRAWN for loss in worst.values())
    advice = " (hostile=False leaves extreme points out)" if extreme else ""
    parts = [f"digits lost, and values missing{advice}:"]
    for loss in list(worst.values())[:MAX_SHOWN_LOSSES]:
        index = f"[{', '.join(map(str, loss.index))}]" if loss.index else ""
        many = f"{loss.digits} digits lost" if loss.word == "digits lost" else loss.word
        name, at, sizes = loss.name.partition(" at ")
        text = f"{name}{index}{at}{sizes}: {many} at {loss.place} ({KINDS.get(loss.kind, loss.kind)})"
        if loss.expected:
            text += f": expected {_with_short_exponent(loss.expected)}, found {loss.found}"
        parts.append("    " + text)
    if len(worst) > MAX_SHOWN_LOSSES:
        parts.append(f"    ... and {len(worst) - MAX_SHOWN_LOSSES} more")
    return parts


def _with_short_exponent(number: str) -> str:
    """``3.615 · 10^(-4.3e+159)`` for a number whose exponent is too long to be read."""
    mantissa, _, exponent = number.partition("e")
    long = len(exponent) > 12
    return f"{mantissa[:6]} · 10^({float(exponent):.1e})" if long else number


# ---- Markdown and HTML --------------------------------------------------------------------------


def as_markdown(certificate: Certificate) -> str:
    """A heading, a table, and the faults as code blocks."""
    head, rows = table_of(certificate)
    parts = [f"**{headline(certificate)}**", ""]
    for cells in (head, ["---"] * len(head), *rows):
        parts.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    parts.append("")
    parts.extend(f"```text\n{text}\n```" for text in _faults(certificate))
    if certificate.losses:
        parts.append("```text\n" + "\n".join(losses_text(certificate)) + "\n```")
    if certificate.assumes:
        parts.append("Trusted: " + trusted_text(certificate.assumes))
    parts.extend(certificate.notes)
    parts.extend(boundaries_text(certificate))
    return without_tags("\n".join(parts))


COLORS = {
    "assumed": "#757575",
    "proved": "#2e7d32",
    "tested": "#1565c0",
    "measured": "#00838f",
    "refuted": "#c62828",
    "undecided": "#ef6c00",
}


def as_html(certificate: Certificate) -> str:
    """A table with colored statuses."""
    head, rows = table_of(certificate)
    body = ""
    for name, status, *rest in rows:
        colored = f'<span style="color:{COLORS[status]}">{status}</span>'
        cells = (html.escape(name), colored, *map(html.escape, rest))
        body += f"<tr>{''.join(f'<td>{c}</td>' for c in cells)}</tr>"
    heads = "".join(f"<th>{c}</th>" for c in head)
    texts = [*_faults(certificate), "\n".join(losses_text(certificate))]
    faults = "".join(f"<pre>{html.escape(text)}</pre>" for text in texts if text)
    trusted = (
        f"<p>Trusted: {html.escape(trusted_text(certificate.assumes))}</p>" if certificate.assumes else ""
    )
    notes = [*certificate.notes, *boundaries_text(certificate)]
    trusted += "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    title = html.escape(headline(certificate))
    table = f"<table><tr>{heads}</tr>{body}</table>"
    return visible(f"<p><b>{title}</b></p>{table}{faults}{trusted}")


METHODS.update(
    headline=lambda certificate: visible(headline(certificate)),
    text=as_text,
    markdown=as_markdown,
    html=as_html,
)

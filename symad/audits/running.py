"""Running an audit: one process for each package, so that the output and failures of a library stay there."""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpmath
import sympy

import symad
from symad.audits.claims import GROUPS, Claim, Group, Row
from symad.core.arrays import Number
from symad.errors import SymadError
from symad.tracing.wrt import name_of, select

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from symad.verification.certificate.certificate import Entry
    from symad.verification.certificate.witness import Nested

MODULES = {
    "statsmodels": ("statsmodels_links", "statsmodels_counts", "statsmodels_code"),
    "scikit-learn": ("scikit_learn",),
    "torch": ("elementwise",),
    "jax": ("elementwise",),
    "scipy": ("scipy_functions",),
    "autograd": ("elementwise",),
}
"""The packages for which symad has claims, and the files of `symad.audits` with these claims."""

SECONDS = 120.0
"""The time limit for a target; after it the target is ended, and the audit continues with the next one."""

SEED = 1
"""The seed of random choices, so that a second run gives the same verdicts."""

Report = Callable[[Row, str], None]
"""Receives each row, and how many of the groups of claims were begun: ``3 of 14``."""


def audit(package: str, report: Report = lambda row, place: None, seconds: float = SECONDS) -> list[Row]:
    """The verdicts on all claims about a package, or on those of a Python file.

    Args:
        package: one of `MODULES`, or FILE[:NAME], a file of claims or one of them (`user_files`); it is run.
        report: is called with each row as soon as it is known, and its place among the groups of claims.
        seconds: the limit for one claim.

    Raises:
        SymadError: symad has no claims about the package, and there is no such file.
    """
    check_name(package)
    progress = Progress([])
    while not _run(package, progress, report, seconds):
        pass
    return progress.rows


@dataclass
class Progress:
    """The progress of an audit, which is passed from a process that ended to the next one."""

    rows: list[Row]
    done: dict[int, int] = field(default_factory=dict)
    """The number of claims of each group that have a row."""
    groups: int = 0
    """How many groups of claims there are."""
    ended: set[int] = field(default_factory=set)
    """Groups that end their process, or do not answer, while they construct their claims."""


def check_name(package: str) -> None:
    """Check that a package is known, or that the file exists.

    Raises:
        SymadError: neither is the case.
    """
    file, _, name = package.rpartition(":")
    if package not in MODULES and not any(Path(p).is_file() for p in (package, file)):
        if ".py" in package or "/" in package:
            raise SymadError(f"there is no file {file if file and name.isidentifier() else package}")
        raise SymadError(
            f"symad ships no claims about {package!r}; it ships {', '.join(MODULES)}, and a Python file may "
            "declare others (symad.audits.group)"
        )


def version_of(package: str) -> str:
    """The installed version, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _run(package: str, progress: Progress, report: Report, seconds: float) -> bool:
    """Establish the remaining claims in a new process; False if it has to be restarted after a target."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    arguments = package, dict(progress.done), set(progress.ended), sender
    process = context.Process(target=_child, args=arguments, daemon=True)
    process.start()
    sender.close()
    group, name, target, started = -1, package, "", False
    try:
        while True:
            limit = seconds if started else max(seconds, SECONDS)
            if not receiver.poll(limit):
                why = f"did not answer in {limit:g} s"
                break
            message, started = receiver.recv(), True
            if message is None:
                return True
            if isinstance(message, tuple):
                group, name, progress.groups = message
                target = ""
            elif isinstance(message, str):
                target = message
            else:
                _add(message, group, progress, report)
                target = ""
    except EOFError:
        process.join()
        why = f"ended its process (exit code {process.exitcode})"
    finally:
        process.kill()
        process.join()
    if not target:  # the failure is in the construction of claims
        progress.ended.add(group)
    _add(Row(package, target or name, "", "failed", note=why), group, progress, report)
    return group < 0


def _add(row: Row, group: int, progress: Progress, report: Report) -> None:
    progress.rows.append(row)
    progress.done[group] = progress.done.get(group, 0) + 1
    report(row, f"{group + 1} of {progress.groups}")


def _child(package: str, done: Mapping[int, int], ended: Set[int], sender: Connection) -> None:
    """Runs in the new process: announces each group and target, sends its row, and sends None at the end."""
    with open(os.devnull, "w") as nowhere:  # the output of libraries, also from C, is discarded
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            groups = _groups(package)
        except Exception as problem:
            sender.send(Row(package, package, "", "failed", note=_told(problem)))
            groups = {}
        for index, (name, made) in enumerate(groups.items()):
            if index not in ended:
                sender.send((index, name, len(groups)))
                for claim in islice(_claims(package, name, made), done.get(index, 0), None):
                    if isinstance(claim, Claim):
                        sender.send(claim.target)
                    sender.send(establish(package, claim) if isinstance(claim, Claim) else claim)
        sender.send(None)


def _groups(package: str) -> Mapping[str, Group]:
    """The functions that make the claims about a package or a file, by name; a failing import raises."""
    if package in MODULES:
        for name in MODULES[package]:
            importlib.import_module(f"symad.audits.{name}")
        return {made.__name__: made for made in GROUPS.get(package, [])}
    from symad.audits.user_files import declared
    from symad.load_models import split_target

    return declared(*split_target(package))


def _claims(package: str, name: str, made: Group) -> Iterator[Claim | Row]:
    """The claims of a group; a failure of the group is a row too."""
    try:
        for claim in made():
            if isinstance(claim, Claim):
                yield claim
            else:
                kind = type(claim).__name__
                yield Row(package, name, "", "failed", note=f"a group yields claims, not {kind}")
    except ImportError as problem:
        told = f"not installed: {problem}; the extra audit of symad brings the packages"
        yield Row(package, name, "", "failed", note=told)
    except Exception as problem:
        yield Row(package, name, "", "failed", note=_told(problem))


def establish(package: str, claim: Claim) -> Row:
    """The verdict on one claim, with the witness of a refutation and its confirmation."""
    start = time.perf_counter()
    row = Row(package, claim.target, claim.words, "failed", note=claim.known)
    options: dict[str, Any] = {"hostile": False, "seed": SEED, **claim.options, claim.kind: claim.function}
    try:
        certificate = symad.verify(claim.formula, claim.wrt, **options)
    except Exception as problem:
        return replace(row, note=_told(problem), seconds=time.perf_counter() - start)
    row = replace(row, verdict=certificate.status, seconds=time.perf_counter() - start)
    if certificate.status == "refuted" and certificate.witness is not None:
        entry = next(e for e in certificate.entries if e.status == "refuted")
        return _with_witness(row, claim, entry)
    if certificate.status == "undecided":
        reason = next(e.reason for e in certificate.entries if e.status == "undecided")
        row = replace(row, note="; ".join(filter(None, (claim.known, reason))))
    return row


def _with_witness(row: Row, claim: Claim, entry: Entry) -> Row:
    """The row with the point of failure, both values, and the error."""
    witness = entry.witness
    assert witness is not None
    point = {str(name): value for name, value in witness.point.items()}
    row = replace(
        row,
        where=", ".join(f"{name} = {value}" for name, value in point.items()),
        expected=str(witness.left)[:20],
        found=str(witness.right)[:20],
        mistake=entry.blame.mistake if entry.blame else "",
    )
    try:
        expected, found = mpmath.mpf(witness.left), mpmath.mpf(witness.right)
        row = replace(row, error=mpmath.nstr(abs(found - expected) / abs(expected), 2) if expected else "∞")
        return replace(row, confirmed=_confirmed(claim, entry, point, expected))
    except (ValueError, TypeError):
        return row


def _confirmed(claim: Claim, entry: Entry, point: Mapping[str, Nested], expected: Number) -> str:
    """The derivative by numerical differentiation of the formula with 50 digits, without symad's rules."""
    if not isinstance(claim.formula, sympy.Expr):
        return ""
    symbols = sorted(claim.formula.free_symbols, key=str)
    by = [name_of(node) for node in select(symad.trace(claim.formula), claim.wrt).nodes]
    orders = dict.fromkeys(map(str, symbols), 0)
    if claim.kind == "gradient":
        orders[entry.name.removeprefix("∂f/∂")] += 1
    elif claim.kind == "hessian":
        for k in entry.witness.index if entry.witness else ():
            orders[by[k]] += 1
    elif claim.kind != "value":
        return ""
    with mpmath.workdps(50):
        function = sympy.lambdify(symbols, claim.formula, "mpmath")
        at = [mpmath.mpf(str(point[str(s)])) for s in symbols]
        found = mpmath.diff(function, at, tuple(orders.values())) if any(orders.values()) else function(*at)
        same = abs(found - expected) <= mpmath.mpf("1e-15") * abs(expected)
    return mpmath.nstr(found, 15) if same else ""


def _told(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"


def summary(rows: Iterable[Row]) -> dict[str, int]:
    """The number of rows for each verdict."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return counts

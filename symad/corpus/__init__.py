"""A corpus of correct and wrong derivatives, from papers and libraries, with the verdict on each.

The entries are data files in this folder: source, formula, claim, verdict, and for wrong ones the
smallest point that refutes the claim. Formulas have the form of `symad.save`; nothing in a file is executed.

    for entry in symad.corpus.load():
        print(entry.name, entry.verdict, entry.establish().status)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import sympy

from symad.core.given import earlier_names
from symad.derivatives.jacobian import gradient
from symad.errors import SavingError
from symad.saving.saved_values import read_expression
from symad.tracing import trace
from symad.verification import Certificate, verify

__all__ = ["CorpusEntry", "WrongPoint", "load"]

FOLDER = Path(__file__).parent
FILES = ("wrong.json", "right.json")
VERDICTS = ("right", "wrong")
SEED = 1


@dataclass(frozen=True)
class WrongPoint:
    """A point of small rational numbers at which a claim is wrong."""

    point: Mapping[str, Fraction]
    true: str
    """The derivative there, to 12 digits."""
    claimed: str


@dataclass(frozen=True)
class CorpusEntry:
    """A claim about a derivative: the derivative of ``formula`` of these orders is ``claim``."""

    name: str
    verdict: str
    """"right" or "wrong"."""
    source: str
    """The source: a paper, or a library with version and file."""
    reads: str
    """The claim in words, for people."""
    formula: sympy.Expr = field(repr=False)
    order: Mapping[str, int]
    """The order of differentiation by each variable; empty if the claim is about the value."""
    claim: sympy.Expr = field(repr=False)
    domain: sympy.Basic | None = field(default=None, repr=False)
    """The domain of the claim, a SymPy condition; None for everywhere."""
    url: str = ""
    about: str = ""
    """The mistake, or a remark."""
    witness: WrongPoint | None = None

    def establish(self, **options: Any) -> Certificate:
        """The certificate of the claim, established anew; ``options`` are those of `symad.verify`."""
        symbols = self.formula.free_symbols | self.claim.free_symbols
        by_name = {str(s): s for s in sorted(symbols, key=str)}
        graph = trace(self.formula, list(by_name.values()))
        steps = [by_name[name] for name, count in self.order.items() for _ in range(count)]
        for symbol in steps[:-1]:
            graph = gradient(graph, symbol)
        given: dict[str, Any] = {"seed": SEED, **options}
        if self.domain is not None:
            given["where"] = self.domain
        if not steps:
            return verify(graph, value=self.claim, **given)
        return verify(graph, steps[-1], gradient=self.claim, **given)

    def holds(self, certificate: Certificate) -> bool:
        """True if a certificate agrees with the verdict of the corpus."""
        return certificate.status in {"right": ("proved", "tested"), "wrong": ("refuted",)}[self.verdict]


@cache
def load() -> tuple[CorpusEntry, ...]:
    """All entries, the wrong ones first.

    Raises:
        SavingError: a data file is damaged.
    """
    return tuple(entry for name in FILES for entry in read(FOLDER / name))


def read(path: Path) -> list[CorpusEntry]:
    """The entries of a file; nothing in it is executed.

    Raises:
        SavingError: it is not a corpus; the message names the entry and the problem.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise SavingError(f"{path} is not a corpus: {problem}") from None
    if not isinstance(rows, list):
        raise SavingError(f"{path} is not a corpus: it contains no list of entries")
    entries = []
    for number, row in enumerate(rows, 1):
        try:
            entries.append(_entry(row))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise SavingError(f"entry {number} of {path}: {type(problem).__name__}: {problem}") from problem
    return entries


def _entry(row: Mapping[str, Any]) -> CorpusEntry:
    texts = {key: str(row.get(key, "")) for key in ("name", "verdict", "source", "reads", "url", "about")}
    if texts["verdict"] not in VERDICTS or not texts["name"]:
        raise ValueError("an entry has a name and the verdict right or wrong")
    formula, claim = read_expression(row["formula"]), read_expression(row["claim"])
    names = {str(s) for s in formula.free_symbols}
    order = {str(name): int(count) for name, count in row["order"].items()}
    if not set(order) <= names or any(not 0 < count < 5 for count in order.values()):
        raise ValueError(f"order {order} of a formula of {', '.join(sorted(names))}")
    return CorpusEntry(
        formula=formula,
        order=order,
        claim=claim,
        domain=read_expression(row["domain"]) if "domain" in row else None,
        witness=_witness(row["witness"]) if "witness" in row else None,
        **texts,
    )


def _witness(saved: Mapping[str, Any]) -> WrongPoint:
    point = {str(name): Fraction(str(value)) for name, value in saved["at"].items()}
    return WrongPoint(point, str(saved["true"]), str(saved["claimed"]))


__getattr__ = earlier_names(__name__, Entry="CorpusEntry", Witness="WrongPoint")

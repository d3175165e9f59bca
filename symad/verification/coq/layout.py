"""The layout of a Coq file: definitions to read first, then data and proofs for the machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from symad.core.identifiers import ascii_identifier
from symad.verification.coq.gallina import domain_text, let_names, program_data, program_text, wrapped
from symad.verification.coq.programs import CoqProgram, is_somewhere
from symad.verification.coq.terms import FUNCTIONS, postorder

if TYPE_CHECKING:
    import sympy as sp


RESERVED = {
    "R", "PI", "IZR", "nat", "list", "nth", "prog", "term", "fn", "check", "run", "inputs", "domain",
    "entry_of_value", "entry_of_list", "is_derive", "let_in", "at1", "at2", "at3", "True", "I",
    "eq_refl", "conj", "as", "at", "cofix", "else", "end", "exists", "fix", "for", "forall", "fun",
    "if", "in", "let", "match", "mod", "return", "then", "using", "where", "with", "Prop", "Set",
    "Type", "SProp", "Definition", "Lemma", "Theorem", "Proof", "Qed", "Var", "Int", "Pi", "Add", "Sub",
    "Mul", "Div", "Opp", "Pow", "App", "App2", "Let", "Need", "Ret", "by", "IF", "O", "S", "t", "l", "H",
} | set(FUNCTIONS) | set(FUNCTIONS.values())  # fmt: skip
"""Words of Coq, of the library, and of the proofs that are printed."""

MAX_ENTRIES_OF_A_THEOREM = 200
"""The maximum number of entries that one theorem states."""


def coq_name(name: str, taken: Collection[str]) -> str:
    """A Coq identifier for a name: Greek letters are spelled out; reserved and taken words are avoided."""
    plain = ascii_identifier(name)
    unique, k = plain, 1
    while unique in taken or unique in RESERVED or re.fullmatch(r"t\d+", unique):
        k += 1
        unique = f"{plain}_{k}"
    return unique


@dataclass(frozen=True)
class CoqArgument:
    """An argument of the function in Coq: a number, or a function of indices.

    ``first`` is the number of its first element; ``varies`` is true if the function is differentiated by it.
    """

    name: str
    symbol: sp.Basic
    shape: tuple[int, ...]
    first: int
    varies: bool
    positive: bool = False

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def is_renamed(self) -> bool:
        """Whether the name in Coq is another one."""
        return self.name != str(self.symbol)

    @property
    def binder(self) -> str:
        """``x`` with its type."""
        return f"({self.name} : {'nat -> ' * len(self.shape)}R)"

    def elements(self) -> list[tuple[str, str]]:
        """For each element its text, and the text of the argument with that element replaced by t."""
        found = []
        for index in np.ndindex(*self.shape):
            at = " ".join(map(str, index))
            nat = " ".join(f"{i}%nat" for i in index)
            found.append(
                (f"{self.name} {nat}", f"(at{len(index)} {self.name} {at} t)") if index else (self.name, "t")
            )
        return found


@dataclass(frozen=True)
class FileFunction:
    """A function of the file: the model (name ""), or a derivative of the part ``of``."""

    name: str
    program: CoqProgram
    scalar: bool
    of: str | None


@dataclass
class Theory:
    """The contents of a file."""

    stem: str
    name: str
    arguments: Sequence[CoqArgument]
    origin: str
    parts: list[FileFunction]

    def add(self, name: str, program: CoqProgram, scalar: bool, of: str | None = None) -> None:
        """Add a function."""
        self.parts.append(FileFunction(name, program, scalar, of))

    def full(self, part: str) -> str:
        """The name of a function in Coq."""
        return f"{self.name}_{part}" if part else self.name

    @property
    def binders(self) -> str:
        """The arguments with their types; neighbors of the same type share one binder."""
        groups: list[tuple[str, list[str]]] = []
        for a in self.arguments:
            kind = "nat -> " * len(a.shape) + "R"
            if groups and groups[-1][0] == kind:
                groups[-1][1].append(a.name)
            else:
                groups.append((kind, [a.name]))
        return " ".join(f"({' '.join(names)} : {kind})" for kind, names in groups)

    @property
    def names(self) -> str:
        """The names of the arguments."""
        return " ".join(a.name for a in self.arguments)

    @property
    def count(self) -> int:
        """The number of all elements of all arguments."""
        return sum(a.count for a in self.arguments)


def theory_text(theory: Theory) -> str:
    """The whole file."""
    derivatives = [p for p in theory.parts if p.of is not None]
    statements = sum(_operations(p.program) for p in theory.parts)
    listed = ", ".join(theory.full(p.name) + "_correct" for p in derivatives)
    sections = [_header(theory, listed, statements), _definitions(theory)]
    sections.append("(** ** What the machine reads: the same functions as data, and the proofs *)")
    sections.append(
        wrapped(f"Definition {theory.full('inputs')} {theory.binders} : list R :=\n  [{_elements(theory)}].")
    )
    sections += [_data_of(theory, part) for part in theory.parts]
    for part in derivatives:
        sections.append(_theorems(theory, part))
    return "\n\n".join(sections) + "\n"


def _header(theory: Theory, theorems: str, statements: int) -> str:
    others = [a for a in theory.arguments if a.is_renamed]
    renamed = "".join(f"\n    {a.name} is {_in_comment(a.symbol)}." for a in others)
    somewhere = all(is_somewhere(p.program) for p in theory.parts if p.program.needs)
    notes = renamed + ("" if somewhere else NOWHERE)
    return f"""\
(** {theory.name}: its derivatives, certified by symad.

    To check: coqc SymadFunctions.v SymadStatements.v SymadElementary.v SymadPrograms.v SymadEquality.v
    SymadCertificates.v {theory.stem}.v
    (one after the other: coqc takes one file at a time), with Coq 8.16 or later and Coquelicot.

    To read: the definitions below and what the theorems say; all else is proof.
    Theorems: {theorems}.
    The function was printed from {theory.origin}.
    Its derivatives are those that symad computes, on the domain. All have {statements} operations.{notes} *)

Require Import Reals List ZArith.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadStatements SymadCertificates.
Import ListNotations.
Open Scope R_scope.

(* Names are compared before they are unfolded, or shared values would be compared again and again. *)
Strategy 1000 [let_in]."""


NOWHERE = """

    Read the domain: no point was found at which all of its conditions hold. If there is none, a theorem with
    this premise says nothing. Conditions of the branches of a Piecewise are required everywhere."""


def _in_comment(symbol: object) -> str:
    """The name of an input, without what would end a comment of Coq or begin a text."""
    return "".join(c if c.isprintable() and c not in '()*"' else "?" for c in str(symbol))


def _operations(program: CoqProgram) -> int:
    """How many different operations a program has."""
    parts = postorder([*program.terms.lets, *program.outputs], lambda term: term.args)
    return sum(term.head not in {"Var", "Int", "Pi"} for term in parts)


def _elements(theory: Theory) -> str:
    return "; ".join(text for a in theory.arguments for text, _ in a.elements())


def _numbered(theory: Theory) -> dict[int, str]:
    """The text of each element by its number."""
    return {a.first + k: text for a in theory.arguments for k, (text, _) in enumerate(a.elements())}


def _definitions(theory: Theory) -> str:
    made = []
    taken = {a.name for a in theory.arguments}
    sources = {p.of for p in theory.parts}
    for part in theory.parts:
        names = let_names(part.program, _numbered(theory), taken)
        name, kind = theory.full(part.name), "R" if part.scalar else "list R"
        body = program_text(part.program, names, not part.scalar)
        made.append(wrapped(f"Definition {name} {theory.binders} : {kind} :=") + f"\n{body}.")
        if part.name in sources and part.program.needs:
            head = wrapped(f"Definition {name}_domain {theory.binders} : Prop :=")
            made.append(f"{head}\n{domain_text(part.program, names)}.")
    return "\n\n".join(made)


def _data_of(theory: Theory, part: FileFunction) -> str:
    name, first = theory.full(part.name), f"{theory.count + 1}"
    ret = "(fun l => nth 0 l 0)" if part.scalar else "(fun l => l)"
    kind = "R" if part.scalar else "list R"
    return f"""\
Definition {name}_program : prog :=
{program_data(part.program)}.

Lemma {name}_is {theory.binders} :
  run {ret} {name}_program {first} (inputs ({theory.full("inputs")} {theory.names})) = {name} {theory.names}.
Proof. exact_no_check (@eq_refl ({kind}) ({name} {theory.names})). Qed."""


def _theorems(theory: Theory, part: FileFunction) -> str:
    """The lemma and the theorems for a derivative."""
    name, of = theory.full(part.name), next(p for p in theory.parts if p.name == part.of)
    source = theory.full(of.name)
    made = [
        f"""\
Lemma {name}_checked : check {theory.count} {_varied(theory)} {source}_program {name}_program = true.
Proof. vm_cast_no_check (@eq_refl bool true). Qed."""
    ]
    entries = [
        _entry(theory, part, of, row, column)
        for row in range(len(of.program.outputs))
        for column in _columns(theory)
    ]
    premise = f"{source}_domain {theory.names} -> " if of.program.needs else ""
    given = "H" if of.program.needs else "I"
    for k in range(0, len(entries), MAX_ENTRIES_OF_A_THEOREM):
        chosen = entries[k : k + MAX_ENTRIES_OF_A_THEOREM]
        suffix = f"_{k // MAX_ENTRIES_OF_A_THEOREM + 1}" if len(entries) > MAX_ENTRIES_OF_A_THEOREM else ""
        claims = " /\\\n  ".join(claim for claim, _ in chosen)
        steps = [f"  exact ({proof.replace('GIVEN', given)})." for _, proof in chosen]
        steps = [f"  apply conj. {{ {s.strip()} }}" for s in steps[:-1]] + steps[-1:]
        made.append(
            wrapped(f"Theorem {name}_correct{suffix} {theory.binders} : {premise}".rstrip())
            + f"\n  {claims}.\nProof.\n"
            + ("  intros H.\n" if of.program.needs else "")
            + "\n".join(steps)
            + f"\nQed.\n\nPrint Assumptions {name}_correct{suffix}."
        )
    return "\n\n".join(made)


def _varied(theory: Theory) -> int:
    return sum(a.count for a in theory.arguments if a.varies)


def _columns(theory: Theory) -> list[int]:
    return [a.first + k for a in theory.arguments if a.varies for k in range(a.count)]


def _entry(theory: Theory, part: FileFunction, of: FileFunction, row: int, column: int) -> tuple[str, str]:
    """The claim about one entry, and its proof."""
    name, source = theory.full(part.name), theory.full(of.name)
    moved, here = [], ""
    for a in theory.arguments:
        inside = a.first <= column < a.first + a.count
        text, replaced = a.elements()[column - a.first] if inside else ("", a.name)
        moved.append(replaced)
        here = text or here
    along = " ".join(moved)
    varied = _varied(theory)
    value = f"{source} {along}" if of.scalar else f"nth {row} ({source} {along}) 0"
    point = f"({here})" if " " in here else here
    claim = (
        f"is_derive (fun t => {value}) {point} (nth {row * varied + column - 1} ({name} {theory.names}) 0)"
    )
    lemma = "entry_of_value" if of.scalar else "entry_of_list"
    proof = (
        f"{lemma} {theory.count} {varied} _ _ {name}_checked {row} {column - 1} "
        f"({theory.full('inputs')} {theory.names}) "
        f"(fun t => {source} {along}) {point} ({name} {theory.names}) eq_refl GIVEN eq_refl "
        f"(fun t => {source}_is {along}) ({name}_is {theory.names})"
    )
    return claim, proof

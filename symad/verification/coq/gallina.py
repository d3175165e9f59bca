"""Terms and programs as Coq text: as functions of real numbers, and as data for the checker."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

from symad.verification.coq.programs import CoqProgram, ProgramLine
from symad.verification.coq.terms import FUNCTIONS, CoqTerm

ATOM, POWER, UNARY, PRODUCT, SUM, ALL = 0, 30, 35, 40, 50, 100
"""Levels of Coq's notations: a term of a lower level needs no parentheses."""

CHAINS = {"Add": (" + ", SUM, PRODUCT), "Sub": (" - ", SUM, PRODUCT), "Mul": (" * ", PRODUCT, UNARY),
          "Div": (" / ", PRODUCT, UNARY)}  # fmt: skip


def real(term: CoqTerm, names: Mapping[int, str], most: int = ALL) -> str:
    """A term as an expression of type R, in parentheses if its level is above ``most``."""
    level, text = _real(term, names)
    return text if level <= most else f"({text})"


def _real(term: CoqTerm, names: Mapping[int, str]) -> tuple[int, str]:
    if term.head in CHAINS:
        return _chain(term, names)
    match term.head:
        case "Var":
            name = names[term.value]
            return (10 if " " in name else ATOM), name
        case "Int":
            return ATOM, str(term.value) if term.value >= 0 else f"({term.value})"
        case "Pi":
            return ATOM, "PI"
        case "Opp":
            return UNARY, f"- {real(term.args[0], names, POWER)}"
        case "Pow":
            return POWER, f"{real(term.args[0], names, 10)} ^ {term.value}"
    if term.function == "Inv":
        return UNARY, f"/ {real(term.args[0], names, POWER)}"
    arguments = " ".join(real(a, names, ATOM) for a in term.args)
    return 10, f"{FUNCTIONS[term.function]} {arguments}"


def _chain(term: CoqTerm, names: Mapping[int, str]) -> tuple[int, str]:
    """Sums and products from the left, without recursion along them."""
    level = CHAINS[term.head][1]
    parts: list[str] = []
    while term.head in CHAINS and CHAINS[term.head][1] == level:
        sign, _, right = CHAINS[term.head]
        parts += [real(term.args[1], names, right), sign]
        term = term.args[0]
    parts.append(real(term, names, level))
    return level, "".join(reversed(parts))


def data(term: CoqTerm) -> str:
    """A term as a value of the inductive type ``term``, in parentheses where it has arguments."""
    closing = ""
    opening = ""
    while term.head in {"Add", "Sub", "Mul", "Div"}:  # a loop along the left side, not a deep recursion
        opening += f"({term.head} "
        closing = f" {data(term.args[1])})" + closing
        term = term.args[0]
    return opening + _data(term) + closing


def _data(term: CoqTerm) -> str:
    match term.head:
        case "Var":
            return f"(Var {term.value})"
        case "Int":
            return f"(Int {term.value})" if term.value >= 0 else f"(Int ({term.value}))"
        case "Pi":
            return "Pi"
        case "Opp":
            return f"(Opp {data(term.args[0])})"
        case "Pow":
            return f"(Pow {data(term.args[0])} {term.value})"
    return f"({term.head} {term.function} {' '.join(map(data, term.args))})"


def program_data(program: CoqProgram) -> str:
    """A program as a value of the inductive type ``prog``."""
    lines, count = [], 0
    for step in program.steps:
        opening = f"Need {step.need} " if step.need else "Let "
        lines.append(f"  {opening}{data(step.term)} (")
        count += 1
    outputs = ";\n    ".join(data(t).removeprefix("(").removesuffix(")") for t in program.outputs)
    return wrapped("\n".join([*lines, f"  Ret [{outputs}]" + ")" * count]))


def let_names(program: CoqProgram, names: Mapping[int, str], taken: set[str]) -> dict[int, str]:
    """The names of the inputs and of the named terms."""
    found = dict(names)
    number = 0
    for k in range(len(program.terms.lets)):
        number += 1
        while f"t{number}" in taken:
            number += 1
        found[program.terms.inputs + k + 1] = f"t{number}"
    return found


def program_text(program: CoqProgram, names: Mapping[int, str], as_list: bool) -> str:
    """The body of a function: names with ``let*``, then the output or the list of outputs."""
    lines, number = [], program.terms.inputs
    for step in program.steps:
        if not step.need:
            number += 1
            lines.append(f"  let* {names[number]} := {real(step.term, names)} in")
    texts = [real(t, names) for t in program.outputs]
    lines.append("  [" + ";\n   ".join(texts) + "]" if as_list else f"  {texts[0]}")
    return wrapped("\n".join(lines))


def domain_text(program: CoqProgram, names: Mapping[int, str]) -> str:
    """The conditions as a proposition; a name is defined only if a later condition may use it."""
    last = max((k for k, s in enumerate(program.steps) if s.need), default=-1)
    lines, number, opened = [], program.terms.inputs, 0
    for k, step in enumerate(program.steps[: last + 1]):
        if step.need:
            lines.append(f"  {condition(step, names)}" + (" /\\" if k < last else ")" * opened))
        else:
            number += 1
            opening = "(" if k and program.steps[k - 1].need else ""
            opened += len(opening)
            lines.append(f"  {opening}let* {names[number]} := {real(step.term, names)} in")
    return wrapped("\n".join(lines)) if lines else "  True"


def condition(step: ProgramLine, names: Mapping[int, str]) -> str:
    """The condition under which a function has a derivative."""
    x, argument = real(step.term, names, SUM), real(step.term, names, ATOM)
    match step.need:
        case "Inv":
            return f"{x} <> 0"
        case "Log":
            return f"0 < {x}"
        case "Tan" | "Sec":
            return f"cos {argument} <> 0"
        case "Csc" | "Cot":
            return f"sin {argument} <> 0"
        case "Acosh":
            return f"1 < {x}"
        case "Log1p":
            return f"-1 < {x}"
    return f"-1 < {x} < 1"


def wrapped(text: str) -> str:
    """Lines of at most 108 characters, where there is a space to break them."""
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        lines.append(
            fill(
                line.strip(), 108, initial_indent=indent, subsequent_indent=indent + "  ",
                break_long_words=False, break_on_hyphens=False,
            )
        )  # fmt: skip
    return "\n".join(lines)

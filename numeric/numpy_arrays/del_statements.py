"""Statements that give memory back: ``del`` after the last use of a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


def release(
    lines: Sequence[str], result: str, worth: Callable[[str], bool] = lambda name: True
) -> list[str]:
    """The statements with ``del`` after the last use of every value that is not returned.

    The memory of an array is free when the last of its names is. Values that a nested function reads
    live as long as it may be called.

    Args:
        lines: the statements of a function, nested ones indented.
        result: the expression it returns.
        worth: whether a name is that of an array that is worth a statement.
    """
    units = _units(lines)
    last: dict[str, int] = {}
    for k, unit in enumerate(units):
        nested = unit[0].startswith("def ")
        for name in _values("\n".join(unit)):
            last[name] = len(units) if nested else max(k, last.get(name, 0))
    made = [name for unit in units for name in _targets(unit[0])]
    kept = _values(result)
    dead: dict[int, list[str]] = {}
    for name in dict.fromkeys(made):
        if name not in kept and last[name] < len(units) - 1 and worth(name):
            dead.setdefault(last[name], []).append(name)
    out: list[str] = []
    for k, unit in enumerate(units):
        out += unit
        if k < len(units) - 1 and unit[0].startswith("for "):
            # arrays of the last step, and parts of others; they may not exist, if there was no step
            rows = [n for n in _rows(unit) if n not in kept and worth(n) and last[n] == k]
            out += [f"{' = '.join(rows)} = None"] if rows else []
        if k in dead:
            out.append(f"del {', '.join(dead[k])}")
    return out


def _rows(unit: Sequence[str]) -> list[str]:
    """The names that a loop gives to arrays and to parts of arrays."""
    names = _names(unit[0].removeprefix("for ").partition(" in ")[0])
    for line in unit[1:]:
        names += _targets(line.strip())
    return list(dict.fromkeys(names))


def _units(lines: Sequence[str]) -> list[list[str]]:
    """Statements with the lines nested in them."""
    units: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and units:
            units[-1].append(line)
        else:
            units.append([line])
    return units


def _values(text: str) -> set[str]:
    return set(re.findall(r"\b(?:v|new|state)\d+\b", text))


def _targets(line: str) -> list[str]:
    """The values that a statement makes."""
    left, equals, _ = line.partition(" = ")
    names = left.split(", ") if equals else []
    return names if names == _names(left) else []


def _names(text: str) -> list[str]:
    """The names of values in a list of names."""
    return [name for name in text.split(", ") if re.fullmatch(r"(?:v|new|state)\d+", name)]

"""Clues mislead no rule: where a sum is said to have no better form, the engine finds none."""

from collections import Counter
from typing import Any

import pytest
import sympy as sp

import symad
from benchmarks.scalar.bench_lost_bits import FORMULAS
from benchmarks.scalar.cases import recurrence, shared
from symad.core.graph import Node
from symad.stable import stabilize
from symad.stable.clues import Clues
from symad.stable.differences import Differences

U, V, X, Y = sp.symbols("u v x y", real=True)
OTHERS = {
    "recurrence": recurrence(6),
    "shared": shared(4),
    "functions of functions": (sp.sin(sp.sqrt(X + 1)) - sp.sin(sp.sqrt(X)), [X]),
    "exponentials of squares": (sp.exp(-((X + Y) ** 2)) - sp.exp(-(X**2)), [X, Y]),
    "a sum and an input": (U * sp.cos(V) - (U + X) * sp.sin(V), [U, V, X]),
    "a quotient and one": (X / (X + Y) - 1, [X, Y]),
    "products": (sp.sin(X + Y) * sp.cos(X) - sp.sin(X) * sp.cos(X + Y), [X, Y]),
    "reflections": (Y * sp.exp(X) - Y * sp.exp(-X), [X, Y]),
    "one": (Y - Y * sp.tanh(X) ** 2 + X, [X, Y]),
}
CASES = {name: (f.value, list(f.decades)) for name, f in FORMULAS.items()} | OTHERS


@pytest.mark.sample(30)
@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("name", CASES)
def test_no_row_is_missed(name: str, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    value, inputs = CASES[name]
    may_change, better_sum = Clues.may_change, Differences.better_sum
    found: Counter[tuple[bool, bool]] = Counter()

    def asked(self: Differences, op: Any, args: tuple[Node, ...]) -> Node | None:
        may = not 1 < len(args) <= 40 or may_change(self.clues, args, self.last)
        made = better_sum(self, op, args)
        found[may, made is not None] += 1
        return made

    monkeypatch.setattr(Clues, "may_change", lambda *args: True)
    monkeypatch.setattr(Differences, "better_sum", asked)
    graph = symad.trace(value, inputs)
    if order:
        graph = (symad.gradient if order == 1 else symad.hessian)(graph, inputs)
    stabilize(graph)
    assert found[False, True] == 0


def test_most_sums_of_a_recurrence_of_layers_have_no_clue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of many terms: functions of sums that share a bias are no partners."""
    w = sp.symbols("w0:12", real=True)
    layers = [
        sp.tanh(sum((w[i] * sp.Float(0.137 * (k + 1) + 0.011 * i) for i in range(8)), w[8])) for k in range(6)
    ]
    graph = symad.gradient(symad.trace(sum(w[9 + k % 3] * f for k, f in enumerate(layers)), list(w)), list(w))
    may_change, found = Clues.may_change, []

    def asked(self: Clues, args: tuple[Node, ...], last: bool) -> bool:
        found.append(may_change(self, args, last))
        return found[-1]

    monkeypatch.setattr(Clues, "may_change", asked)
    stabilize(graph)
    assert len(found) > 10
    assert sum(found) < len(found) / 4

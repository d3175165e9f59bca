"""Finding the isomorphisms of contraction networks that the checker asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice, permutations
from typing import Any

from symad.core.dims import Dim, same_dim
from symad.core.graph import Node
from symad.verification.checker.networks import AXIS, Atom, Factor, Form, Network, Networks
from symad.verification.checker.terms import Refused
from symad.verification.checker.writing_out import Element
from symad.verification.proof.find_proof import EXHAUSTED, Json

MAX_PAIRS_TRIED, MAX_AXIS_ORDERS = 20_000, 24
"""The maximum numbers of pairs of factors tried in one search, and of orders of an atom's axes."""

MAX_NETWORKS_MADE, MAX_MATCHES = 20_000, 20_000
"""The maximum numbers of networks made, and of pairs compared, for one identity."""


class IsomorphismFinder(Networks):
    """The checker's machine for all sizes, with its questions answered by search."""

    def __init__(
        self,
        define: bool = False,
        opened: Mapping[Node, Element] | None = None,
        most: int = MAX_NETWORKS_MADE,
    ) -> None:
        """Nothing is asked yet; ``define`` says whether functions are replaced by their definitions.

        ``most`` networks may be made.
        """
        super().__init__((), opened)
        self.define, self.most = define, most
        self.found: list[tuple[int, Json]] = []
        self.compared: Sequence[Form] = ()
        self.definable = False
        self.tried = self.made = self.matches = 0

    def simple(self, number: Fraction | int, factors: Sequence[Factor], sums: Mapping[int, Dim]) -> Form:
        """One network; the finder gives up where there are too many."""
        self.made += 1
        if self.made > self.most:
            raise Refused(EXHAUSTED)
        return super().simple(number, factors, sums)

    def ask(self, kind: str, *about: Any) -> Json:
        """The answer to a question, written down if there is one."""
        self.count += 1
        number = self.count
        if kind == "equal":
            self.compared = about
        self.definable |= kind == "define"
        answers: Any = {"merge": self._merge, "atom": self._atom, "equal": self._match_forms}
        # a condition is one name unless functions are written out
        answer = answers[kind](*about) if kind in answers else self.define == (kind == "define")
        if answer is not False and answer is not None and (answer != [] or kind == "equal"):
            self.found.append((number, answer))
        return answer

    def odd_nodes(self) -> tuple[int, set[Node], set[Node]]:
        """How many networks one side has and the other lacks; the nodes in those of each side."""
        counts = [Counter((n.number, _signature(n)) for n in form) for form in self.compared]
        found, count = [], 0
        for form, own, other in zip(self.compared, counts, reversed(counts), strict=True):
            left = own - other
            count += left.total()
            found.append({node for n in form if left[n.number, _signature(n)] for node in self._nodes_in(n)})
        return max(count, 1), found[0], found[1]

    def _nodes_in(self, n: Network) -> set[Node]:
        """The nodes that the atoms of a network are about."""
        found = set[Node]()
        for kind, data, forms in (self.atoms[a] for a, _, _ in n.factors):
            found |= {data} if kind == "input" and isinstance(data, Node) else set()
            found |= {node for form in forms for m in form for node in self._nodes_in(m)}
        return found

    def _merge(self, form: Sequence[Network]) -> list[Json]:
        """Each network with an earlier one that it equals."""
        answer, kept = [], dict[Any, list[int]]()
        for i, n in enumerate(form):
            alike = kept.setdefault(_signature(n), [])
            for j in alike:
                names = self._match(n, form[j], {})
                if names is not None:
                    answer.append([i, j, sorted(map(list, names.items()))])
                    break
            else:
                alike.append(i)
        return answer

    def _atom(self, atom: Atom, axes: int) -> Json:
        """An earlier atom that is the same function of the same forms, or itself with its axes exchanged."""
        for number, old in self.atoms.items():
            if (old.kind, old.data, len(old.forms)) != (atom.kind, atom.data, len(atom.forms)):
                continue
            for order in islice(permutations(range(axes)), MAX_AXIS_ORDERS):
                if (maps := self._maps(atom, old, order)) is not None:
                    return [number, list(order), maps]
        if axes == 2 and (maps := self._maps(atom, atom, (1, 0))) is not None:
            return [-len(self.atoms), [1, 0], maps]
        return None

    def _maps(self, atom: Atom, old: Atom, order: Sequence[int]) -> list[Json] | None:
        """How the forms of one atom are those of another, with its axes in another order."""
        names = {AXIS + k: AXIS + i for k, i in enumerate(order)}
        maps = [self._match_forms(a, b, names) for a, b in zip(atom.forms, old.forms, strict=True)]
        return None if None in maps else maps

    def _match_forms(self, a: Form, b: Form, axes: Mapping[int, int] | None = None) -> list[Json] | None:
        """For each network of one form its place in the other, and a renaming."""
        if len(a) != len(b):
            return None
        pairs, left = [], dict[Any, list[int]]()
        for j, m in enumerate(b):
            left.setdefault((m.number, _signature(m)), []).append(j)
        for n in a:
            alike = left.get((n.number, _signature(n)), [])
            for j in alike:
                names = self._match(n, b[j], axes or {})
                if names is not None:
                    pairs.append([j, sorted(map(list, names.items()))])
                    alike.remove(j)
                    break
            else:
                return None
        return pairs

    def _match(self, n: Network, m: Network, axes: Mapping[int, int]) -> dict[int, int] | None:
        """A renaming of the bound indices of n by which it becomes m, of the same signature."""
        self.matches += 1
        if self.matches > MAX_MATCHES:
            raise Refused(EXHAUSTED)
        self.tried = 0
        return self._extend(n, m, axes, 0, {}, frozenset(range(len(m.factors))))

    def _extend(
        self, n: Network, m: Network, axes: Mapping[int, int], k: int, names: dict[int, int],
        left: frozenset[int],
    ) -> dict[int, int] | None:  # fmt: skip
        if k == len(n.factors):
            return names if n.same(m, [*names.items()], axes) else None
        a, at, e = n.factors[k]
        for place in left:
            b, there, f = m.factors[place]
            self.tried += 1
            if (a, e) != (b, f) or self.tried > MAX_PAIRS_TRIED:
                continue
            for turned in (there, there[::-1]) if a <= 0 and there else (there,):
                more = _unified(n, m, axes, names, at, turned)
                if more is not None:
                    whole = self._extend(n, m, axes, k + 1, more, left - {place})
                    if whole is not None:
                        return whole
        return None


def _signature(n: Network) -> tuple[Any, ...]:
    """What networks have in common that differ in their indices alone."""
    return (len(n.sums), *sorted((a, e) for a, _, e in n.factors))


def _unified(
    n: Network, m: Network, axes: Mapping[int, int], names: dict[int, int],
    at: Sequence[int], there: Sequence[int],
) -> dict[int, int] | None:  # fmt: skip
    """The renaming with the indices of one factor entered."""
    made = dict(names)
    for i, j in zip(at, there, strict=True):
        if i not in n.sums:
            if axes.get(i, i) != j:
                return None
        elif (
            j not in m.sums
            or made.get(i, j) != j
            or not same_dim(n.sums[i], m.sums[j])
            or (i not in made and j in made.values())
        ):
            return None
        else:
            made[i] = j
    return made

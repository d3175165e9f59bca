"""All families of pairs, and a verifier's verdicts on them.

The right answer follows from how a pair was made, and from mpmath's values at points, without symad.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.pairs import branches, hidden, kinds, mechanisms, moved, roots, users
from tests.pairs.pair import Maker, Pair

FAMILIES: dict[str, tuple[tuple[Maker, int], ...]] = {
    "roots": ((roots.beside, 5), (roots.in_a_branch, 3), (roots.in_its_own_region, 4),
              (roots.products_of_roots, 3)),
    "domains": ((roots.domain_of_another, 2), (roots.domain_of_its_own, 1)),
    "branches": ((branches.by_cases, 4), (branches.weighted, 1)),
    "moved": ((moved.gathered, 4),),
    "hidden": ((hidden.stepped, 2), (hidden.whole, 1), (hidden.powers, 1), (hidden.zero_symbol, 1)),
    "steps": ((hidden.jumps_apart, 1),),
    "kinds": ((kinds.indexed, 1), (kinds.whole_numbers, 1), (kinds.matrix_powers, 1),
              (kinds.any_size, 1), (kinds.namesakes, 1)),
    "zeros": ((roots.beside_a_zero, 2),),
    "users": ((users.rules, 1), (users.programs, 1)),
    "mechanisms": ((mechanisms.values, 4), (mechanisms.derivatives, 3), (mechanisms.inside, 3),
                   (mechanisms.plateaus, 2), (mechanisms.outside, 1), (mechanisms.touching, 2),
                   (mechanisms.masks, 2), (mechanisms.empty, 1)),
}  # fmt: skip
"""The makers of each family, with their weights."""

RULES = "S10 rules of users"


def pairs(count: int, seed: int, families: tuple[str, ...] = tuple(FAMILIES)) -> Iterator[Pair]:
    """Random pairs, each family by its weight."""
    rng = random.Random(seed)
    makers = [maker for name in families for maker, weight in FAMILIES[name] for _ in range(weight)]
    made = 0
    while made < count:
        pair = makers[rng.randrange(len(makers))](rng)
        if pair is not None:
            made += 1
            yield pair


@dataclass
class Tally:
    """The counts of verdicts, by family."""

    equal: dict[str, Counter[str]] = field(default_factory=dict)
    different: dict[str, Counter[str]] = field(default_factory=dict)
    hard: Counter[str] = field(default_factory=Counter)
    false_certificates: list[str] = field(default_factory=list)
    false_refutations: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def judge(self, pair: Pair, seed: int) -> None:
        """Asks the verifier, and compares its verdict with the known answer."""
        try:
            status = pair.ask(pair, seed).status
        except Exception as problem:
            status = f"crashed: {type(problem).__name__}"
            self.crashes.append(f"{pair.text}: {problem}")
        table = self.equal if pair.equal else self.different
        if pair.equal and pair.hard:
            self.hard[status] += 1
        else:
            table.setdefault(pair.family, Counter())[status] += 1
        if not pair.equal and status in ("proved", "tested"):
            self.false_certificates.append(f"{pair.family}, {status}: {pair.text}")
        if pair.equal and status == "refuted":
            self.false_refutations.append(f"{pair.family}: {pair.text}")
        if pair.equal and status == "undecided":
            self.undecided.append(f"{pair.family}: {pair.text}")

    @property
    def decided(self) -> float:
        """The share of the pairs known to be equal that were proved or tested; hard ones do not count.

        Rules of users are sampled, and no sample establishes them: "measured" is all that may be said.
        """
        rules = self.equal.get(RULES, Counter[str]())
        total = sum((c for c in self.equal.values()), Counter[str]())
        best = total["proved"] + total["tested"] + rules["measured"]
        return best / max(sum(total.values()), 1)

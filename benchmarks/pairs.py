"""Pairs known to be equal, or known to differ, judged by the verifier: no answer may be wrong.

The pairs come from tests/pairs, family by family: roots beside other elements and in branches, domains
of neighbours, branches that share subexpressions, rows moved by gather and stack, hidden zeros and
integers, integer inputs, symbolic sizes, namesakes. Their answers are known without symad.

Usage: python benchmarks/pairs.py [--count 20000] [--seed 0] [--jobs 2] [--families roots,moved];
exits 1 if a pair that differs is certified, or one that is equal is refuted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.pairs.generate import FAMILIES, Tally, pairs  # noqa: E402

BLOCK = 250
"""Pairs for one process at a time."""


def block(count: int, seed: int, families: tuple[str, ...]) -> tuple[Tally, float]:
    """The verdicts on some pairs, and the CPU time they took."""
    tally, start = Tally(), time.process_time()
    for k, pair in enumerate(pairs(count, seed, families)):
        tally.judge(pair, k)
    return tally, time.process_time() - start


def main() -> int:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--undecided", action="store_true", help="list the equal pairs that were not decided")
    options = parser.parse_args()
    families = tuple(options.families.split(","))
    blocks = [min(BLOCK, options.count - k) for k in range(0, options.count, BLOCK)]
    seeds = [options.seed * 1_000_003 + k for k in range(len(blocks))]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(block, blocks, seeds, [families] * len(blocks)))
    report([tally for tally, _ in found], sum(t for _, t in found), options)
    return 1 if any(t.false_certificates or t.false_refutations for t, _ in found) else 0


def report(tallies: list[Tally], seconds: float, options: argparse.Namespace) -> None:
    """The figures of all blocks together."""
    for name, tables in (
        ("equal", [t.equal for t in tallies]),
        ("different", [t.different for t in tallies]),
    ):
        for family in sorted({f for table in tables for f in table}):
            print(f"{name:9} {family:40} {dict(sum((t.get(family, Counter()) for t in tables), Counter()))}")
    print(f"equal by identities nobody has to know: {dict(sum((t.hard for t in tallies), Counter()))}")
    shown = ["false_certificates", "false_refutations", "crashes"] + ["undecided"] * options.undecided
    for name in shown:
        texts = [text for t in tallies for text in getattr(t, name)]
        print(f"{name.replace('_', ' ')}: {len(texts)}")
        print("".join(f"  {text}\n" for text in texts[:40]), end="")
    total = sum((c for t in tallies for c in t.equal.values()), Counter())
    share = 100 * (total["proved"] + total["tested"]) / max(sum(total.values()), 1)
    print(
        f"equal pairs decided: {share:.1f} %; {options.count} pairs, {seconds:.0f} s of CPU, "
        f"seed {options.seed}"
    )


if __name__ == "__main__":
    sys.exit(main())

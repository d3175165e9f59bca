"""Pairs that are known to be equal or to differ, judged by the verifier: no verdict may be wrong.

The pairs come from tests/pairs, in families: roots next to other elements and in branches, domains of
neighbors, branches that share subexpressions, rows moved by gather and stack, hidden zeros and integers,
integer inputs, symbolic sizes, equal names. Whether a pair is equal is known without symad.

Usage: python benchmarks/verification/pairs.py [--count 20000] [--seed 0] [--jobs 2] [--families roots,moved];
exits 1 if a pair that differs is certified, or an equal one is refuted.
With --record FILE every completed block of pairs is written to a file, one JSON object per line; blocks that
are in the file already are not run again, so that a run can be interrupted and resumed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.pairs.generate import FAMILIES, Tally, pairs  # noqa: E402

BLOCK = 250
"""The number of pairs of one task."""


def block(count: int, seed: int, families: tuple[str, ...]) -> dict[str, Any]:
    """The verdicts on some pairs, and their CPU time."""
    tally, start = Tally(), time.process_time()
    for k, pair in enumerate(pairs(count, seed, families)):
        tally.judge(pair, k)
    return {"seed": seed, "pairs": count, "seconds": time.process_time() - start, **vars(tally)}


def main() -> int:
    """Run the pairs and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--undecided", action="store_true", help="list the equal pairs that were not decided")
    parser.add_argument("--record", type=Path, help="a file of completed blocks, to which others are added")
    options = parser.parse_args()
    families = tuple(options.families.split(","))
    blocks = [min(BLOCK, options.count - k) for k in range(0, options.count, BLOCK)]
    wanted = {options.seed * 1_000_003 + k: count for k, count in enumerate(blocks)}
    found = recorded(options.record, wanted)
    with ProcessPoolExecutor(options.jobs) as pool:
        missing = [(count, seed) for seed, count in wanted.items() if seed not in found]
        for future in as_completed([pool.submit(block, *asked, families) for asked in missing]):
            done = future.result()
            found[done["seed"]] = done
            if options.record:
                with options.record.open("a") as file:
                    file.write(json.dumps(done) + "\n")
    report(list(found.values()), options)
    return 1 if any(b["false_certificates"] or b["false_refutations"] for b in found.values()) else 0


def recorded(path: Path | None, wanted: dict[int, int]) -> dict[int, dict[str, Any]]:
    """The blocks of this command that an earlier run recorded, by seed."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    return {b["seed"]: b for b in map(json.loads, lines) if wanted.get(b["seed"]) == b["pairs"]}


def added(tables: list[dict[str, int]]) -> dict[str, int]:
    """The sum of some counts."""
    return dict(sum(map(Counter, tables), Counter[str]()))


def report(blocks: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """The counts of all blocks together."""
    for name in ("equal", "different"):
        for family in sorted({f for b in blocks for f in b[name]}):
            print(f"{name:9} {family:40} {added([b[name].get(family, {}) for b in blocks])}")
    print(f"equal by identities nobody has to know: {added([b['hard'] for b in blocks])}")
    shown = ["false_certificates", "false_refutations", "crashes"] + ["undecided"] * options.undecided
    for name in shown:
        texts = [text for b in blocks for text in b[name]]
        print(f"{name.replace('_', ' ')}: {len(texts)}")
        print("".join(f"  {text}\n" for text in texts[:40]), end="")
    total = added([c for b in blocks for c in b["equal"].values()])
    share = 100 * (total.get("proved", 0) + total.get("tested", 0)) / max(sum(total.values()), 1)
    print(
        f"equal pairs decided: {share:.1f} %; {sum(b['pairs'] for b in blocks)} pairs, "
        f"{sum(b['seconds'] for b in blocks):.0f} s of CPU, seed {options.seed}"
    )


if __name__ == "__main__":
    sys.exit(main())

"""Random programs of nested derivatives, loops, batches, roots and recomputed parts, against JAX.

Gradients, pushforwards, Hessians, `jet`, `vmap`, loops, `implicit`, `remat`, constants and functions with
derivative rules of their own are nested in each other, and close over values of outer scopes under names that
are in use already. Value and gradient come from the graph, from kernels of every backend, and from code for a
given x.

Usage: python benchmarks/verification/nested_programs.py [--count 1000] [--first 0] [--depth 2] [--jobs 2]
Needs JAX. Exits 1 if a number is wrong, or an error is not one of symad's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

BACKENDS = ("numpy", "c", "runs", "given")
SHOWN = 600
"""The number of characters of a message that are printed."""
BLOCK = 50
"""The number of programs after which JAX's compiled code is dropped; it takes some 10 MB for each."""


def outcomes(seeds: range, depth: int) -> list[str]:
    """For each program "agrees", "has no value", or a description of the error."""
    import jax

    found = [outcome(seed, depth) for seed in seeds]
    jax.clear_caches()
    return found


def outcome(seed: int, depth: int) -> str:
    """The outcome of one program."""
    from tests.nested.programs import MORE, judge

    try:
        return "agrees" if judge(seed, depth, BACKENDS, MORE) else "has no value"
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {str(error).strip()[:SHOWN]}"


def main() -> int:
    """Run the programs and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--depth", type=int, default=2, help="the depth of nested functions")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start, found = time.perf_counter(), Counter[str]()
    end = options.first + options.count
    blocks = [range(k, min(k + BLOCK, end)) for k in range(options.first, end, BLOCK)]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for block in pool.map(partial(outcomes, depth=options.depth), blocks):
            wrong = [said for said in block if said not in ("agrees", "has no value")]
            found.update("wrong" if said in wrong else said for said in block)
            print("\n".join([*wrong, f"{found.total()} of {options.count}"]), flush=True)
    print(f"{options.count} programs: {dict(found)}, {time.perf_counter() - start:.0f} s")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

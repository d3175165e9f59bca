"""One summary, in the form of pytest, of several runs that wrote outcomes by ``--costs=FILE`` (costs.py)."""

import json
import sys
from pathlib import Path

NAMES = {"error": "errors"}


def summary(runs):
    """The line of pytest for all runs together.

    >>> runs = [{"outcomes": {"passed": 2}, "cpu": 1.0}, {"outcomes": {"passed": 1}, "cpu": 2.5}]
    >>> summary(runs)
    '3 passed in 3.50s'
    """
    totals = {}
    for run in runs:
        for name, count in run["outcomes"].items():
            totals[name] = totals.get(name, 0) + count
    counted = ", ".join(f"{count} {NAMES.get(name, name)}" for name, count in totals.items() if count)
    return f"{counted or 'no tests ran'} in {sum(run['cpu'] for run in runs):.2f}s"


if __name__ == "__main__":
    told = [json.loads(Path(path).read_text("utf-8")) for path in sys.argv[1:]]
    print(f"{f' {summary(told)} ':=^100}")
    sys.exit(any(run["outcomes"].get(bad) for run in told for bad in ("failed", "error")))

"""One summary, in pytest's form, of several runs that wrote their outcomes by ``--costs FILE`` (tests/costs.py)."""

import json
import sys
from pathlib import Path

NAMES = {"error": "errors"}


def summary(runs):
    """The line of pytest for all runs together.

    >>> summary([{"outcomes": {"passed": 2, "failed": 0}, "cpu": 1.0}, {"outcomes": {"passed": 1}, "cpu": 2.5}])
    '3 passed in 3.50s'
    """
    totals = {}
    for run in runs:
        for name, count in run["outcomes"].items():
            totals[name] = totals.get(name, 0) + count
    counted = ", ".join(f"{count} {NAMES.get(name, name)}" for name, count in totals.items() if count)
    return f"{counted or 'no tests ran'} in {sum(run['cpu'] for run in runs):.2f}s"


if __name__ == "__main__":
    missing = [path for path in sys.argv[1:] if not Path(path).exists()]
    for path in missing:
        print(f"{path} is missing: its run did not come to an end")
    told = [json.loads(Path(path).read_text("utf-8")) for path in sys.argv[1:] if path not in missing]
    print(f"{' ' + summary(told) + ' (CPU) ':=^100}".replace(" (CPU)", ""))
    sys.exit(bool(missing) or any(run["outcomes"].get(bad) for run in told for bad in ("failed", "error")))

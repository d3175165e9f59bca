"""All tests that need a GPU, including the sanitizers, and one JSON file with their outcomes.

Usage: python benchmarks/gpu/device_tests.py [--out FILE.json] [pytest options]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.report import require_device, save, surroundings

ROOT = Path(__file__).resolve().parents[2]
WHY = ("skipped", "failure", "error")


def outcomes(report: Path) -> dict[str, Any]:
    """The numbers of passed, failed and skipped tests of a JUnit report, and the names of the others."""
    found: Counter[str] = Counter()
    named: dict[str, list[str]] = {"failed": [], "skipped": []}
    for test in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in test}
        kind = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[kind] += 1
        if kind in named:
            reason = next((c.get("message", "") for c in test if c.tag in WHY), "")
            named[kind].append(f"{test.get('classname')}::{test.get('name')}: {reason}"[:300])
    return {"counts": dict(found), **named}


def ended(tests: subprocess.Popen[bytes]) -> tuple[int, bool]:
    """The exit status of pytest, and whether it ran to its end; if interrupted it still writes its report."""
    try:
        return tests.wait(), True
    except KeyboardInterrupt:  # the whole process group was interrupted, including pytest
        return tests.wait(), False


def main() -> int:
    """Run the tests and write one JSON file; the exit status is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu_tests.json"))
    arguments, options = parser.parse_known_args()

    require_device()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "tests", "-m", "gpu", f"--junitxml={report}", *options]
        status, whole = ended(subprocess.Popen(command, cwd=ROOT))
        result = {**surroundings(), "status": status, **outcomes(report)}
    save(arguments.out, result, complete=whole)
    print(result["counts"], "in", arguments.out)
    return status


if __name__ == "__main__":
    sys.exit(main())

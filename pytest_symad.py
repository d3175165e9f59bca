"""The pytest plugin of symad: the fixture `symad_verify`, and a line about certificates at the end of a run.

pytest loads this file in every run in an environment that has symad. It imports neither symad nor SymPy:
they are imported by the first test that asks for a certificate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def symad_verify() -> Callable[..., Any]:
    """`symad.pytest.verify`: a certificate of a derivative, or a failure that prints it."""
    from symad.pytest import verify

    return verify


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many certificates the run made, if it made any."""
    module = sys.modules.get("symad.pytest")
    if module is not None and module.MADE:
        told = ", ".join(f"{count} {status}" for status, count in sorted(module.MADE.items()))
        terminalreporter.write_line(f"symad certificates: {told}")

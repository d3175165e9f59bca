"""Exit codes."""

from __future__ import annotations

OK, REFUTED, USAGE, UNDECIDED = 0, 1, 2, 3
"""All is well; a derivative is wrong; wrong usage or input; neither proved nor refuted."""

OF_STATUS = {"proved": OK, "tested": OK, "measured": OK, "refuted": REFUTED, "undecided": UNDECIDED}
"""The exit code of a certificate's status."""


def worst(codes: list[int]) -> int:
    """The code that matters most: refuted before undecided before well."""
    return REFUTED if REFUTED in codes else UNDECIDED if UNDECIDED in codes else OK


PIPE = 141
"""Whoever read the output has stopped reading: 128 + SIGPIPE, as other programs exit then."""

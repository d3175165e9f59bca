"""Exit codes."""

from __future__ import annotations

OK, REFUTED, USAGE, UNDECIDED = 0, 1, 2, 3
"""All is well; a derivative is wrong; wrong usage or input; neither proved nor refuted."""

OF_STATUS = {"proved": OK, "tested": OK, "measured": OK, "refuted": REFUTED, "undecided": UNDECIDED}
"""The exit code of a certificate's status."""


def worst(codes: list[int]) -> int:
    """The most serious code: refuted, then undecided, then success."""
    return REFUTED if REFUTED in codes else UNDECIDED if UNDECIDED in codes else OK


PIPE = 141
"""The exit code if the reader of the output has closed the pipe: 128 + SIGPIPE, as for other programs."""

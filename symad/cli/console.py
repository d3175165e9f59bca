"""The console of the commands."""

from __future__ import annotations

from typing import NoReturn, TypedDict

from rich.console import Console


class Plain(TypedDict, total=False):
    """The options for text that is printed unchanged."""

    markup: bool
    highlight: bool
    soft_wrap: bool


class Output(Console):
    """rich's console; if the reader closes the pipe, `symad.cli.main` ends the program."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error itself: rich would exit with 1, which here means that a derivative is wrong."""
        raise BrokenPipeError


# ---- exit codes ----------------------------------------------------------------------------------


OK, REFUTED, USAGE, UNDECIDED = 0, 1, 2, 3
"""All is well; a derivative is wrong; wrong usage or input; neither proved nor refuted."""

OF_STATUS = {"proved": OK, "tested": OK, "measured": OK, "refuted": REFUTED, "undecided": UNDECIDED}
"""The exit code of a certificate's status."""


def worst(codes: list[int]) -> int:
    """The most serious code: refuted, then undecided, then success."""
    return REFUTED if REFUTED in codes else UNDECIDED if UNDECIDED in codes else OK


PIPE = 141
"""The exit code if the reader of the output has closed the pipe: 128 + SIGPIPE, as for other programs."""

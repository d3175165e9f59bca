"""The console that commands print to."""

from __future__ import annotations

from typing import NoReturn, TypedDict

from rich.console import Console


class Plain(TypedDict, total=False):
    """What is printed as it is."""

    markup: bool
    highlight: bool
    soft_wrap: bool


class Output(Console):
    """rich's console, which leaves it to `symad.cli.main` to end the program when nobody reads on."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error itself: rich would exit with 1, which here means that a derivative is wrong."""
        raise BrokenPipeError

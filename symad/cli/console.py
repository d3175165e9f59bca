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

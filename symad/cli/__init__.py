"""The command line: ``symad tour``, ``check``, ``recheck``, ``lower``, ``explain``, ``draw``, ``ops``.

`parser` declares the commands and is the place to start; each file named ``*_command`` runs one of them.
`symad.load_models` finds the models in a user's file, `console` has the exit code of several results, and
`tour` is a package of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from symad.cli.console import PIPE, USAGE
from symad.cli.parser import make_parser
from symad.core.elsewhere import COMMANDS
from symad.errors import SymadError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code reports the result to scripts.

    Args:
        argv: the arguments after the program's name; those of the process by default. None print the help.

    An interrupt by Ctrl-C is left to `symad_command.main`, which is the program ``symad``.

    Returns:
        0 all is well; 1 refuted, or a stage of the tour failed; 2 wrong usage or input; 3 undecided.
    """
    try:
        given = sys.argv[1:] if argv is None else argv
        if given and given[0] in COMMANDS:
            raise SymadError(f"there is no command {given[0]!r}; use 'symad {COMMANDS[given[0]]}'")
        options = make_parser().parse_args(given or ["--help"])
        code = int(options.command(options))
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else USAGE
    except BrokenPipeError:  # the reader has closed the pipe, as in `symad ops | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except OSError as error:
        print(f"symad: {error.filename or 'error'}: {error.strerror or error}", file=sys.stderr)
        return USAGE
    except SymadError as error:
        print(f"symad: {error}", file=sys.stderr)
        return USAGE


__all__ = ["main"]

"""The commands and their help, which explains them by examples."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser, HelpFormatter, _SubParsersAction
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import symad
from symad.cli import check_command, ops_table, write_commands
from symad.cli.tour import command as tour_command
from symad.guests import commands as of_guests

if TYPE_CHECKING:
    from argparse import Namespace

    Commands = _SubParsersAction[ArgumentParser]
else:
    Commands = Any

INTRODUCTION = """\
Write a model once as SymPy mathematics; get derivatives that are proved, and fast code.
"""

MODELS = """\
FILE is a Python file of yours. It is run, so give only files that you trust. NAME is defined in it
at module level: a SymPy object, a symad Graph, a function without arguments that returns one (or
a list or dict of them), or a function of arrays whose shapes --inputs gives. Without NAME the
command uses all models that need no shapes:

    # model.py
    from sympy import *
    x, y = symbols("x y", real=True)
    valley = (1 - x)**2 + 100*(y - x**2)**2

    def loss(W, X):
        return ((X @ W)**2).sum()
"""

EXIT_CODES = """\
exit codes:
  0  all is well            2  wrong usage or input
  1  a derivative is wrong  3  neither proved nor refuted
"""

FIRST_STEPS = """\
first steps:
  symad tour                                  every model, from trace to data
  symad check model.py                        are its derivatives right?
  symad explain model.py:valley --at x=1,y=2  every step of all modes
  symad lower model.py:valley --of gradient   readable NumPy code
  symad draw model.py:valley -o valley.svg    the graph as a picture
  symad audit statsmodels                     derivatives that a library ships
  symad ops                                   which op answers which question

'symad COMMAND --help' explains each of them.

"""


class Paragraphs(HelpFormatter):
    """Wraps paragraphs to the width of the terminal; examples and tables are not changed."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_filled(block, width) for block in text.strip("\n").split("\n\n"))


def _filled(block: str, width: int) -> str:
    """A paragraph, wrapped; in a block with indented lines only the lines without indentation."""
    lines = block.split("\n")
    if any(line.startswith(" ") for line in lines):
        return block
    return textwrap.fill(block, width, break_on_hyphens=False)


def make_parser() -> ArgumentParser:
    """The parser of the whole command line; each command sets ``command`` to its function."""
    parser = ArgumentParser(
        "symad", description=INTRODUCTION, epilog=FIRST_STEPS + EXIT_CODES, formatter_class=Paragraphs
    )
    parser.add_argument("--version", action="version", version=f"symad {symad.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_tour, _check, _recheck, _lower, _explain, _draw, _ops):
        add(commands)
    for each in of_guests():
        each.add_command(commands)
    return parser


def command(
    commands: Commands, name: str, help_: str, text: str, run: Callable[[Namespace], int]
) -> ArgumentParser:
    """A new command: its name, a line of help, a text with examples, and the function that runs it."""
    parser: ArgumentParser = commands.add_parser(
        name,
        help=help_,
        description=help_[0].upper() + help_[1:] + ".",
        epilog=text,
        formatter_class=Paragraphs,
    )
    parser.set_defaults(command=run)
    return parser


def _model(parser: ArgumentParser, one: bool = True) -> None:
    form = "FILE:NAME" if one else "FILE[:NAME]"
    parser.add_argument("model", metavar=form, help="a Python file, and the model in it")
    parser.add_argument(
        "--inputs",
        nargs="+",
        metavar="X=SIZES",
        help="shapes of a function's arguments: W=4,3 X=n,4; a name alone is a scalar, p.W=3 the entry W of "
        "a dict p",
    )


def _wrt(parser: ArgumentParser) -> None:
    parser.add_argument("--wrt", metavar="X,Y", help="inputs to differentiate by; all by default")


def _tour(commands: Commands) -> None:
    text = """\
Each stage is a model. It is traced, differentiated in every mode (which must agree), checked
against symbolic derivatives, lowered to code and run on data. A row of the table has the result,
and the lines below the table explain the numbers.

examples:
  symad tour                     all stages
  symad tour --list              their names
  symad tour rosenbrock arm      some of them
  symad tour --quick             a few representative ones
  symad tour --out pictures      and save graphs, tables and pictures
  symad tour --out pictures --resume     continue an interrupted tour
  symad tour --html              and write a page, symad-tour/index.html

The exit code is 1 if anything failed.
"""
    parser = command(
        commands, "tour", "trace, differentiate, check, lower and run every model", text, tour_command.run
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="names of stages; all by default")
    parser.add_argument("--list", action="store_true", help="list the stages and stop")
    parser.add_argument("--quick", action="store_true", help="a few representative stages, in about a minute")
    parser.add_argument("--out", metavar="DIR", help="a folder for graphs, tables and pictures")
    parser.add_argument("--html", action="store_true", help="write a page with the pictures as well")
    parser.add_argument("--resume", action="store_true", help="skip stages that passed in an earlier tour")


def _check(commands: Commands) -> None:
    text = f"""\
Every mode of differentiation and all four Hessians are compared with independent
derivatives, such as SymPy's own:

  proved     equal by a proof, which the checker replays
  tested     equal at random points in random prime fields; the bound on
             the probability of error is printed
  measured   equal wherever it was tried, such as at some symbolic sizes
  refuted    different at a point, which is printed with 30 digits
  undecided  none of these; the reasons are listed

{MODELS}
examples:
  symad check model.py                         all models of the file
  symad check model.py:valley --wrt x          one, with respect to x
  symad check model.py:loss --inputs W=4,3 X=n,4     a function of arrays
  symad check model.py --json > cert.json      to save; see 'symad recheck'
  symad check model.py:valley --coq valley.v   a proof for Coq

{EXIT_CODES}"""
    parser = command(commands, "check", "certify the derivatives of models", text, check_command.check)
    _model(parser, one=False)
    _wrt(parser)
    parser.add_argument("--json", action="store_true", help="print certificates as JSON")
    told = "write the derivatives of one model with proofs for Coq, and the Coq library beside this file"
    parser.add_argument("--coq", metavar="OUT.v", help=told)


def _recheck(commands: Commands) -> None:
    text = f"""\
The certificate contains the graphs that it compares as data, so nothing in the model's file is run.
Every claim is decided again, with new random primes, and compared with the status in the certificate.

example:
  symad check model.py --json > cert.json
  symad recheck cert.json

{EXIT_CODES}"""
    parser = command(commands, "recheck", "check a saved certificate again", text, check_command.recheck)
    parser.add_argument("certificate", metavar="CERT", help="the output of 'symad check --json'")


LIMIT_HELP = "the maximum number of operations of C code without loops (100000)"
DERIVATIVES = ("value", "gradient", "value-and-gradient", "jacobian", "hessian")


def _lower(commands: Commands) -> None:
    text = f"""\
The result is one readable file that does not need symad. For backend c it is C99 with a header: the
prototypes, sizes as constants, and the position of each input and result. This C code has no loops,
so all sizes must be numbers; if it would be too long, -o OUT.py writes NumPy code that compiles its
loops through symad.

{MODELS}
examples:
  symad lower model.py:valley                           print NumPy code
  symad lower model.py:valley --of hessian -o h.py      the Hessian, in a file
  symad lower model.py:valley --backend c -o valley.c   C99, and valley.h
  symad lower model.py:valley --backend cupy -o valley.cu   CUDA, and valley.h
  symad lower model.py:valley --backend c --name hill   a name in C
  symad lower model.py:valley --style plain --passes    readable code and passes
  symad lower model.py:loss --inputs W=4,3 X=n,4        n stays a symbol
  symad lower model.py:loss --inputs W=4,3 X=8,4 --of gradient --wrt W
  symad lower model.py:loss --inputs W=4,3 X=n,4 --sizes n=8 --backend c
"""
    parser = command(
        commands, "lower", "print a model, or a derivative of it, as fast code", text, write_commands.lower
    )
    _model(parser)
    parser.add_argument("--of", choices=DERIVATIVES, default="value", help="what to lower")
    _wrt(parser)
    told = "numpy, c, runs (large scalar functions) or cupy (default: numpy)"
    parser.add_argument("--backend", default="numpy", help=told)
    parser.add_argument("--sizes", nargs="+", metavar="N=4", help="numbers for symbolic sizes")
    parser.add_argument("--limit", type=int, metavar="OPERATIONS", help=LIMIT_HELP)
    parser.add_argument("--dtype", default="float64", help="float64 or float32 (default: float64)")
    parser.add_argument("--style", choices=("fast", "plain"), default="fast", help="for speed or for reading")
    parser.add_argument("--name", help="the name of the function in the code (default: that of the model)")
    parser.add_argument(
        "--optimize", type=int, choices=(0, 1, 2), default=2,
        help="how much the C compiler optimizes, for -o OUT.py of backend c: 0 compiles soonest (default: 2)",
    )  # fmt: skip
    parser.add_argument("--passes", action="store_true", help="print what each pass did (numpy and c)")
    parser.add_argument("-o", "--output", metavar="OUT", help="the file, .py, .c or .cu; printed by default")


def _explain(commands: Commands) -> None:
    text = f"""\
States, tangents, adjoints, and the Dual numbers of the four Hessian modes, with operation counts
and live memory at each step.

{MODELS}
examples:
  symad explain model.py:valley                       symbolic tables
  symad explain model.py:valley --at x=3 --at y=1/3   fractions stay exact
  symad explain model.py:loss --inputs W=2,1 X=1,2 --at "W=[[1], [2]]" \\
      --at "X=[[3, 4]]" --format latex
  symad explain model.py:valley --at x=3 y=1 --play steps.html    step by step
"""
    shows = "show every step of every mode as tables"
    parser = command(commands, "explain", shows, text, write_commands.explain)
    _model(parser)
    told = "values of inputs, separated by spaces or commas"
    parser.add_argument("--at", metavar="X=VALUE", nargs="+", action="extend", default=[], help=told)
    forms = ("text", "markdown", "latex")
    parser.add_argument("--format", choices=forms, default="text", help="table format (default: text)")
    told = "a page; .pdf: a page for each step; .svg, .png, .tex: a file for each step"
    parser.add_argument("--play", metavar="STEPS.html", help=told)


def _draw(commands: Commands) -> None:
    text = f"""\
{MODELS}
examples:
  symad draw model.py:valley -o valley.svg
  symad draw model.py:valley --of gradient -o gradient.dot     for Graphviz
"""
    parser = command(commands, "draw", "draw the graph of a model", text, write_commands.draw)
    _model(parser)
    parser.add_argument("--of", choices=DERIVATIVES, default="value", help="what to draw")
    _wrt(parser)
    kinds = ".svg, .png, .pdf, .tex or .dot"
    parser.add_argument("-o", "--output", metavar="OUT.svg", required=True, help=kinds)


def _ops(commands: Commands) -> None:
    text = """\
Every operation of a graph answers every question, or there is a reason why not.

  answered       tried on the operation's own examples
  primitive      it needs no definition
  not linear     only linear operations have a transpose; others are
                 linearized first
  no arguments   inputs and constants
  refused        by a backend, for a reason that --json prints
"""
    parser = command(commands, "ops", "show which operation answers which question", text, ops_table.run)
    parser.add_argument("--json", action="store_true", help="print the table as JSON")

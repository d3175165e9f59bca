"""The picture of docs/start/lecture.md and the page of its steps, both from the lecture's example.

The picture stands in docs/pictures: `python docs/make_lecture.py` draws it again. The page is written when
the site is built.
"""

from pathlib import Path

import sympy

import symad

PICTURE = Path(__file__).resolve().parent / "pictures" / "lecture.svg"


def example():
    """f(x, y) = sin(x y) + x² at (2, 1/2), step by step."""
    x, y = sympy.symbols("x y", real=True)
    return symad.trace(sympy.sin(x * y) + x**2).explain(x=2.0, y=0.5)


def write_steps(path):
    """The page with all modes, frame by frame."""
    path.parent.mkdir(parents=True, exist_ok=True)
    example().play(path)


if __name__ == "__main__":
    example().draw(PICTURE)

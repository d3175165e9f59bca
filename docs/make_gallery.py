"""Run every example that draws, keep its pictures in docs/pictures, and write docs/gallery.md.

Run: python docs/make_gallery.py [NUMBER ...]     (all examples, or those with these numbers)
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
TITLES = {
    "02": "Sunspots, fitted twice", "04": "Ten-link pendulum falls", "05": "CO₂ with errors",
    "06": "Soap film, sparsely", "07": "Stiff chemical waves", "08": "Pendulum swings up",
    "09": "Why matrices are colored", "10": "Recurrent networks forecast", "11": "Letters by transformer",
    "12": "Gradients, little memory", "13": "Sequences and images", "14": "Words, then preferences",
    "15": "Climate, one month", "16": "Tokens from pairs", "17": "Gradients through time",
    "18": "Where attention looks", "19": "Low-rank adaptation", "20": "Digits, variational codes",
    "21": "Noise to moons", "22": "Four ways to sample", "23": "Optimizers, one valley",
    "24": "Adversarial games compared", "25": "Digits on demand", "26": "Autoencoders beyond PCA",
    "27": "Kernels of digits", "28": "Tokens as particles", "29": "Numbers into words",
    "32": "Convolutions write digits", "40": "Attention, any score",
}  # fmt: skip
"""Three words under each thumbnail, by the number of the example."""

WIDTH = 1400
"""Pixels; wider pictures are made smaller: the page shows them at half of that."""


def drawing_examples():
    """The examples that take ``--out``, in order."""
    numbered = sorted(EXAMPLES.rglob("[0-9]*.py"), key=lambda path: path.name)
    return [path for path in numbered if '"--out"' in path.read_text("utf-8")]


def run(example, folder):
    """Run one example and return the pictures that it drew."""
    style = {"MPLBACKEND": "agg", "MATPLOTLIBRC": str(DOCS / "matplotlibrc")}
    env = os.environ | {"PYTHONPATH": str(DOCS.parent)} | style
    subprocess.run(
        [sys.executable, str(example), "--out", str(folder)], env=env, check=True, stdout=subprocess.DEVNULL
    )
    return sorted(folder.glob("*.png"))


def keep(picture, example):
    """Store a picture at the width of the page, in few colors, under the number of its example."""
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    if image.width > WIDTH:
        image = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    target = DOCS / "pictures" / f"{example.stem[:2]}_{picture.name}"
    target.parent.mkdir(exist_ok=True)
    few_colors(image).save(target, optimize=True)


def few_colors(image):
    """The picture in 256 colors, chosen to cover all that occur: a median cut loses those of a few points."""
    from PIL import Image

    return image.quantize(256, method=Image.Quantize.MAXCOVERAGE)


def section(example):
    """Title, text, pictures and code of one example."""
    title, _, text = ast.get_docstring(ast.parse(example.read_text("utf-8"))).partition("\n")
    text = text.split("Run: ")[0].strip()
    shown = sorted((DOCS / "pictures").glob(f"{example.stem[:2]}_*.png"))
    images = "\n\n".join(f"![{path.stem[3:].replace('_', ' ')}](pictures/{path.name})" for path in shown)
    name = f"examples/{example.relative_to(EXAMPLES).as_posix()}"
    code = f":::{{dropdown}} {name}\n```{{literalinclude}} ../{name}\n```\n:::"
    return f"(gallery-{example.stem[:2]})=\n## {title.rstrip('.')}\n\n{text}\n\n{images}\n\n{code}\n"


def thumbnails(examples):
    """A card for each example: its first picture and three words, linked to its section."""
    cards = []
    for example in examples:
        number = example.stem[:2]
        first = sorted((DOCS / "pictures").glob(f"{number}_*.png"))[0].name
        cards.append(
            f":::{{grid-item-card}} {TITLES[number]}\n:img-top: pictures/{first}\n"
            f":link: gallery-{number}\n:link-type: ref\n:text-align: center\n"
            ":class-img-top: thumbnail\n:::\n"
        )
    return "::::{grid} 2 3 4 4\n:gutter: 2\n\n" + "\n".join(cards) + "::::\n"


def main():
    """Draw, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", help="two-digit numbers of examples; all by default")
    numbers = parser.parse_args().numbers
    examples = drawing_examples()
    for example in examples:
        if numbers and example.stem[:2] not in numbers:
            continue
        print(example.name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for picture in run(example, Path(folder)):
                keep(picture, example)
    head = (
        "# Gallery\n\nEvery picture is drawn by the example under it, on real data where it learns. "
        "`python docs/make_gallery.py` draws them again.\n"
    )
    parts = [head, thumbnails(examples), *map(section, examples)]
    (DOCS / "gallery.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()

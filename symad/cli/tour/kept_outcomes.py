"""Outcomes of the tour saved in a file, so that an interrupted tour can continue."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import symad
from symad.cli.tour.runner import Outcome
from symad.cli.tour.stage import Finding, Stage
from symad.load_models import ModelError
from symad.saving.atomic_files import write_text

if TYPE_CHECKING:
    import numpy as np

NAME = "tour.json"
FORMAT = "symad tour"


def keep(outcomes: list[Outcome], folder: Path) -> None:
    """Write the outcomes so far."""
    rows = [{**asdict(o), "stage": o.stage.name} for o in outcomes]
    document = {"format": FORMAT, "symad": symad.__version__, "stages": rows}
    write_text(folder / NAME, json.dumps(document, indent=1, ensure_ascii=False, default=_plain))


def _plain(value: np.generic) -> object:
    """A NumPy scalar as Python's own."""
    return value.item()


def kept(folder: Path, stages: dict[str, Stage]) -> dict[str, Outcome]:
    """The successful stages of an earlier tour, by name; failed ones are run again.

    Raises:
        ModelError: the file is not one of a tour, or is of another version.
    """
    path = folder / NAME
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        found = [_outcome(row, stages) for row in document["stages"] if row["stage"] in stages]
    except (ValueError, KeyError, TypeError) as problem:
        raise ModelError(f"{path} contains no tour that can be resumed ({problem})") from problem
    if document["symad"] != symad.__version__:
        raise ModelError(f"{path} is of symad {document['symad']}, this is {symad.__version__}: start anew")
    return {o.stage.name: o for o in found if o.ok and not o.skipped}


def _outcome(row: dict[str, Any], stages: dict[str, Stage]) -> Outcome:
    findings = [Finding(str(f["text"]), bool(f["ok"])) for f in row["findings"]]
    return Outcome(**row | {"stage": stages[row["stage"]], "findings": findings})

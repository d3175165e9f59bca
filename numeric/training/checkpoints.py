"""Checkpoints of training: .npz files of plain arrays; reading one never unpickles."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from symad.core.signatures import Tree
from symad.errors import EvaluationError
from symad.numeric.training.parameters import ParameterForm, State
from symad.saving.atomic_files import replacing


def write_checkpoint(path: str | Path, parameters: Tree, state: State, losses: list[float]) -> None:
    """Write parameters, optimizer state and losses; an interruption leaves the old file intact.

    Parameters in any structure are written by name, see `symad.numeric.training.parameters.ParameterForm`.
    """
    named = ParameterForm.of(parameters).arrays(parameters, "parameters")
    arrays: dict[str, Any] = {f"parameter/{k}": v for k, v in named.items()}
    for group, members in state.items():
        arrays |= {f"state/{group}/{k}": v for k, v in members.items()}
    arrays = {k: v.get() if hasattr(v, "get") else v for k, v in arrays.items()}  # copies from the device
    arrays["losses"] = np.array(losses, dtype=np.float64)
    with replacing(path) as file:
        np.savez(file, **arrays)


def read_checkpoint(path: str | Path, parameters: Tree, state: State) -> tuple[Any, State, list[float]]:
    """Read a checkpoint of a model with these parameters and an optimizer with this state.

    The parameters are returned in the structure of the given ones.

    Raises:
        EvaluationError: the file is not a checkpoint, belongs to other parameters, shapes, another precision
            or optimizer, or contains NaN.
    """
    form = ParameterForm.of(parameters)
    named = form.arrays(parameters, "parameters")
    wanted = {f"parameter/{k}": v if hasattr(v, "dtype") else np.asarray(v) for k, v in named.items()}
    for group, members in state.items():
        wanted |= {f"state/{group}/{k}": v for k, v in members.items()}
    found = _arrays(path)
    losses = found.pop("losses", None)
    if losses is None:
        raise EvaluationError(f"{path} holds no losses; it is not a checkpoint of symad")
    _compare(path, wanted, found)
    made: State = {
        group: {k: found[f"state/{group}/{k}"] for k in members} for group, members in state.items()
    }
    read = form.pack({k: found[f"parameter/{k}"] for k in form.names})
    return read, made, [float(v) for v in losses]


def _arrays(path: str | Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise EvaluationError(f"{path} is not a checkpoint that can be read: {error}") from None


def _compare(path: str | Path, wanted: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> None:
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    if missing or extra:
        raise EvaluationError(
            f"{path} is a checkpoint of another model or optimizer: it lacks "
            f"{', '.join(missing) or 'nothing'} and has in addition {', '.join(extra) or 'nothing'}"
        )
    for name, value in wanted.items():
        if value.shape != found[name].shape:
            raise EvaluationError(
                f"{path} holds {name} with the shape {found[name].shape}, but the model has {value.shape}"
            )
        if value.dtype != found[name].dtype:
            raise EvaluationError(
                f"{path} holds {name} as {found[name].dtype}, but training runs in {value.dtype}; give "
                f"dtype={str(found[name].dtype)!r} to go on with it"
            )
        if not np.isfinite(found[name]).all():
            raise EvaluationError(f"{path} holds NaN or infinity in {name}; start from an earlier checkpoint")

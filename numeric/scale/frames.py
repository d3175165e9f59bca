"""Columns of data frames as Dask arrays, whose chunks are the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.errors import EvaluationError


def columns(frame: Any, *names: str | Sequence[str]) -> Any:
    """Columns of a data frame as Dask arrays of floats with equal chunks, whose lengths are counted once.

    Args:
        frame: a ``dask.dataframe``, for example from `dask.dataframe.read_parquet`.
        names: for each array a list of columns, for shape (n, d), or one column, for shape (n,).

    Returns:
        One array, or a tuple with one for each entry of ``names``.

    Raises:
        EvaluationError: ``frame`` is not a Dask data frame, lacks a column, or a column has no numbers.
    """
    if not hasattr(frame, "to_dask_array") or not hasattr(frame, "columns"):
        raise EvaluationError(f"columns takes a data frame of Dask, not a {type(frame).__name__}")
    groups = [[group] if isinstance(group, str) else list(group) for group in names]
    wanted = list(dict.fromkeys(name for group in groups for name in group))
    missing = [name for name in wanted if name not in frame.columns]
    if missing or not wanted:
        has = ", ".join(map(str, frame.columns))
        raise EvaluationError(f"the data frame has no column {', '.join(map(str, missing))}: it has {has}")
    for name in wanted:
        kind = frame.dtypes[name]
        if getattr(kind, "kind", "O") not in "biuf":
            raise EvaluationError(f"the column {name} has the dtype {kind}; real numbers are needed")
    whole = frame[wanted].astype("float64").to_dask_array()
    whole.compute_chunk_sizes()  # to_dask_array(lengths=True) would count partitions joined by reading
    places = {name: k for k, name in enumerate(wanted)}
    made = [
        whole[:, places[group]] if isinstance(group, str) else whole[:, [places[name] for name in group]]
        for group in names
    ]
    return made[0] if len(made) == 1 else tuple(made)

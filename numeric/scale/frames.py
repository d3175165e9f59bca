"""Columns of data frames as Dask arrays, whose chunks are the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.errors import EvaluationError


def columns(frame: Any, *names: str | Sequence[str]) -> Any:
    """Columns of a data frame as Dask arrays of floats that are cut alike; their lengths are counted once.

    Args:
        frame: a ``dask.dataframe``, such as `dask.dataframe.read_parquet` gives.
        names: for each array a list of columns, for (n, d), or one column, for (n,).

    Returns:
        One array, or a tuple with one for each entry of ``names``.

    Raises:
        EvaluationError: no data frame of Dask, a column that it has not, or one without numbers.
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
    whole.compute_chunk_sizes()  # to_dask_array(lengths=True) counts partitions that reading has joined
    places = {name: k for k, name in enumerate(wanted)}
    made = [
        whole[:, places[group]] if isinstance(group, str) else whole[:, [places[name] for name in group]]
        for group in names
    ]
    return made[0] if len(made) == 1 else tuple(made)

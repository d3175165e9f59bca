"""Functions of data computed part by part: in threads, in processes, on a cluster; fits of data on disk."""

from symad.numeric.scale.distribute import Distributed, SplitError, distribute
from symad.numeric.scale.fits import least_squares, minimize
from symad.numeric.scale.frames import columns
from symad.numeric.scale.glm import LinearModel, glm
from symad.numeric.scale.tasks import ChunkError

__all__ = [
    "ChunkError", "Distributed", "LinearModel", "SplitError", "columns", "distribute", "glm", "least_squares",
    "minimize",
]  # fmt: skip

"""Functions of data computed part by part: in threads, in processes, on a cluster; fits of data on disk."""

from symad.numeric.scale.distribute import Distributed, SplitError, distribute
from symad.numeric.scale.tasks import ChunkError

__all__ = ["ChunkError", "Distributed", "SplitError", "distribute"]

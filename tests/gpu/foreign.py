"""An array of another library on the device, with the interfaces of a torch tensor, for the stand-in."""

from __future__ import annotations

import numpy as np


class Foreign:
    """Memory on a device, by DLPack ("dlpack" in ``offers``), the CUDA array interface ("cuda"), or both."""

    def __init__(self, array, device=0, offers=("dlpack", "cuda"), requires_grad=False):
        self.array, self.device, self.offers = np.asarray(array), device, offers
        self.requires_grad = requires_grad
        self.streams = []
        """The streams that consumers passed, which have to wait."""

    def __getattr__(self, name):
        if name == "__cuda_array_interface__" and "cuda" in self.offers:
            known = self.array.dtype.kind in "fiub"
            return {"typestr": self.array.dtype.str if known else f"|V{self.array.dtype.itemsize}"}
        if name == "__dlpack__" and "dlpack" in self.offers:
            return self._dlpack
        if name == "__dlpack_device__" and "dlpack" in self.offers:
            return lambda: (1 if self.device is None else 2, self.device or 0)
        raise AttributeError(name)

    def _dlpack(self, stream=None):
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        self.streams.append(stream)
        return self.array

    def detach(self):
        """The same memory without the history of gradients."""
        made = Foreign(self.array, self.device, self.offers)
        made.streams = self.streams
        return made

    def seen(self, typestr):
        """The memory as the CUDA array interface describes it."""
        return self.array.view(typestr)

"""The device array of the stand-in."""

from __future__ import annotations

import numbers
import operator
import types

import numpy as np


class ImplicitTransfer(TypeError):
    """A device array was read on the host without being asked for by name."""


class Promotion(TypeError):
    """A result is wider than its operands."""


def host(value):
    """The NumPy value inside; arrays of NumPy itself are refused, as CuPy does."""
    if isinstance(value, ndarray):
        return value._inside
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: a NumPy array among device arrays")
    if isinstance(value, (tuple, list)):
        return type(value)(host(v) for v in value)
    if isinstance(value, (numbers.Number, np.generic, str, slice, type(None), type(Ellipsis))):
        return value
    if isinstance(value, (type, np.dtype)) or callable(value):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def device_operands(values):
    """The device arrays among arguments, also in lists."""
    for value in values:
        if isinstance(value, ndarray):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from device_operands(value)


def wrapped(result, operands, explicit=False):
    """A result as device arrays; wider floats than those of any operand are an error."""
    if isinstance(result, tuple):
        return tuple(wrapped(r, operands, explicit) for r in result)
    array = np.asarray(result)
    kinds = [a.dtype for a in device_operands(operands)]
    floats = [d for d in kinds if d.kind == "f" or d.name == "bfloat16"]
    if floats and all(f.name == "bfloat16" for f in floats) and array.dtype == np.float32:
        array = array.astype(floats[0])  # NumPy's products of bfloat16 are float32, CuPy's are not
    wider = floats and array.dtype.kind == "f" and array.dtype.itemsize > min(f.itemsize for f in floats)
    if wider and not explicit:
        raise Promotion(f"{array.dtype} from operands of {[str(f) for f in floats]}")
    return ndarray(array)


def _binary(function, swapped=False):
    def method(self, other):
        pair = (other, self) if swapped else (self, other)
        with np.errstate(all="ignore"):
            return wrapped(function(host(pair[0]), host(pair[1])), pair)

    return method


def _unary(function):
    return lambda self: wrapped(function(self._inside), (self,))


def _reduction(name):
    def method(self, axis=None, keepdims=False, dtype=None):
        result = getattr(self._inside, name)(axis=axis, keepdims=keepdims)
        return wrapped(result if dtype is None else result.astype(dtype), (self,))

    return method


class _Device:
    id = 0


class ndarray:  # CuPy's name
    """An array that only device functions can read."""

    __array_ufunc__ = None
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, inside):
        self._inside = inside

    dtype = property(lambda self: self._inside.dtype)
    shape = property(lambda self: self._inside.shape)
    ndim = property(lambda self: self._inside.ndim)
    size = property(lambda self: self._inside.size)
    T = property(lambda self: ndarray(self._inside.T))
    device = property(lambda self: _Device())
    data = property(lambda self: types.SimpleNamespace(ptr=self._inside.ctypes.data))

    def view(self, dtype):
        return ndarray(self._inside.view(dtype))

    def __array__(self, *args, **kwargs):
        raise ImplicitTransfer("Implicit conversion to a NumPy array is not allowed")

    def _refuse(self, *args):
        raise ImplicitTransfer("a device array is read on the host; use .item() or asnumpy()")

    __bool__ = __float__ = __int__ = __index__ = __iter__ = __complex__ = _refuse

    def __repr__(self):
        return f"device {self._inside!r}"

    def __format__(self, spec):
        return format(self._inside, spec)

    def __len__(self):
        return len(self._inside)

    def get(self):
        """A copy on the host."""
        return self._inside.copy()

    def item(self):
        return self._inside.item()

    def __getitem__(self, index):
        return ndarray(np.asarray(self._inside[host(index)]))

    def __setitem__(self, index, value):
        inside = host(value)
        if isinstance(inside, np.ndarray) and not np.can_cast(inside.dtype, self.dtype, "same_kind"):
            raise Promotion(f"{inside.dtype} stored in {self.dtype}")
        self._inside[host(index)] = inside

    def astype(self, dtype, copy=True):
        with np.errstate(all="ignore"):
            return ndarray(self._inside.astype(dtype, copy=copy))

    def copy(self):
        return ndarray(self._inside.copy())

    def reshape(self, *shape):
        return ndarray(self._inside.reshape(*shape))

    def transpose(self, *axes):
        return ndarray(self._inside.transpose(*axes))

    def squeeze(self, axis=None):
        return ndarray(self._inside.squeeze(axis))

    def ravel(self):
        return ndarray(self._inside.ravel())

    sum, max, min, prod = map(_reduction, ("sum", "max", "min", "prod"))
    any, all = map(_reduction, ("any", "all"))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
    _function, _plain = getattr(operator, _name), _name.strip("_")
    setattr(ndarray, f"__{_plain}__", _binary(_function))
    setattr(ndarray, f"__r{_plain}__", _binary(_function, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ndarray, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(ndarray, f"__{_name}__", _unary(getattr(operator, _name)))

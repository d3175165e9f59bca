"""The device array of the stand-in."""

from __future__ import annotations

import numbers
import operator
import types

import numpy as np

from tests.gpu.cupy_standin import cuda


class ImplicitTransfer(TypeError):
    """A device array was read on the host without an explicit transfer."""


class Promotion(TypeError):
    """A result is wider than its operands."""


def host(value):
    """The NumPy value inside; arrays of NumPy itself and of another device are refused."""
    if isinstance(value, ndarray):
        if value.device.id != cuda.Device().id:
            raise ValueError(
                f"The device where the array resides ({value.device.id}) is different from the current "
                f"device ({cuda.Device().id}). Peer access is unavailable between these devices."
            )
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


def matmul(a, b):
    """The product of stacks of matrices as CuPy's ``@`` computes it.

    cupy/_core/_routines_linalg.pyx of 14.2.0 (13.6.0): operands with more than two axes of float16 are
    multiplied in float32, line 901 (889); types other than efdFD, such as bfloat16, go to a kernel for
    integers, which does not have that type, line 992 (980); both operands are copied to be contiguous, line
    904.
    """
    left, right = host(a), host(b)
    if max(left.ndim, right.ndim) > 2 and "bfloat16" in (left.dtype.name, right.dtype.name):
        raise ValueError("Invalid dtype: no batched product of bfloat16 in CuPy")
    refuse_capture()
    cuda.counts["products"] += 1
    cuda.launched()
    with np.errstate(all="ignore"):
        return wrapped(np.matmul(left, right), (a, b))


def refuse_capture():
    """Raises while the current stream is capturing, as cuBLAS does; see `tests.gpu.cupy_standin.cuda`."""
    if cuda.get_current_stream().capturing:
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")


def _binary(function, swapped=False):
    def method(self, other):
        pair = (other, self) if swapped else (self, other)
        if function is operator.matmul:
            return matmul(*pair)
        cuda.launched()
        with np.errstate(all="ignore"):
            return wrapped(function(host(pair[0]), host(pair[1])), pair)

    method._computes = True
    return method


def _unary(function):
    def method(self):
        cuda.launched()
        return wrapped(function(host(self)), (self,))

    method._computes = True
    return method


def _halves(terms):
    while terms.shape[-1] > 1:
        half = -(-terms.shape[-1] // 2)
        rest = terms[..., half:]
        terms = np.concatenate([terms[..., : rest.shape[-1]] + rest, terms[..., rest.shape[-1] : half]], -1)
    return terms[..., 0]


ORDERS = {
    "": None,
    "halves": _halves,
    "backwards": lambda terms: np.cumsum(terms[..., ::-1], axis=-1, dtype=terms.dtype)[..., -1],
}
"""How sums are added: NumPy's way, as a tree of threads, one by one. CUPY_ACCELERATORS chooses in CuPy."""
order = [""]


def added(values, axis=None, keepdims=False):
    """The sum over axes, in the order that is chosen."""
    if ORDERS[order[0]] is None or not values.size:
        return values.sum(axis=axis, keepdims=keepdims)
    axes = range(values.ndim) if axis is None else [k % values.ndim for k in np.atleast_1d(axis)]
    kept = [k for k in range(values.ndim) if k not in axes]
    terms = values.transpose(*kept, *axes).reshape(*(values.shape[k] for k in kept), -1)
    total = np.asarray(ORDERS[order[0]](terms))
    return total.reshape([1 if k in axes else n for k, n in enumerate(values.shape)]) if keepdims else total


def _reduction(name):
    def method(self, axis=None, keepdims=False, dtype=None):
        cuda.launched()
        values = host(self)
        reduced = added if name == "sum" else getattr(np.ndarray, name)
        result = reduced(values, axis=axis, keepdims=keepdims)
        return wrapped(result if dtype is None else result.astype(dtype), (self,))

    return method


class ndarray:  # CuPy's name
    """An array that only device functions can read, on the device that was current when it was made."""

    __array_ufunc__ = None
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, inside, dtype=None, memptr=None):
        if memptr is not None:  # a shape, and the address of its values
            self.base = memptr
            inside = memptr.bytes.view(dtype)[: np.prod(inside, dtype=int)].reshape(inside)
        self._inside = inside
        cuda.made(inside)
        self.device = cuda.Device()

    dtype = property(lambda self: self._inside.dtype)
    shape = property(lambda self: self._inside.shape)
    strides = property(lambda self: self._inside.strides)
    ndim = property(lambda self: self._inside.ndim)
    size = property(lambda self: self._inside.size)
    itemsize = property(lambda self: self._inside.itemsize)
    nbytes = property(lambda self: self._inside.nbytes)
    flags = property(lambda self: self._inside.flags)
    T = property(lambda self: ndarray(host(self).T))
    data = property(lambda self: types.SimpleNamespace(ptr=self._inside.ctypes.data))

    def view(self, dtype):
        return ndarray(host(self).view(dtype))

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
        """A copy on the host; this waits for the device (cupy/_core/core.pyx, line 2098 [1873])."""
        cuda.synchronized()
        return self._inside.copy()

    def item(self):
        """A Python number; this waits for the device (cupy/_core/core.pyx, line 680 [565])."""
        cuda.synchronized()
        return self._inside.item()

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        gathered = any(isinstance(part, ndarray) for part in parts)
        cuda.launched(gathered)
        if not gathered and Ellipsis not in parts:
            parts = (*parts, Ellipsis)  # one element is a view as well
        return ndarray(np.asarray(host(self)[host(parts)]))

    def __iadd__(self, other):
        """In place: the memory of a view is that of its array."""
        added = host(self + other)
        host(self)[...] = added
        return self

    def __setitem__(self, index, value):
        cuda.launched()
        inside = host(value)
        if isinstance(inside, np.ndarray) and not np.can_cast(inside.dtype, self.dtype, "same_kind"):
            raise Promotion(f"{inside.dtype} stored in {self.dtype}")
        host(self)[host(index)] = inside

    def astype(self, dtype, copy=True):
        cuda.launched(copy or self.dtype != np.dtype(dtype))
        with np.errstate(all="ignore"):
            return ndarray(host(self).astype(dtype, copy=copy))

    def copy(self):
        cuda.launched()
        return ndarray(host(self).copy())

    def reshape(self, *shape):
        made = host(self).reshape(*shape)
        cuda.launched(not np.may_share_memory(made, self._inside) and made.size > 0)
        return ndarray(made)

    def transpose(self, *axes):
        return ndarray(host(self).transpose(*axes))

    def fill(self, value):
        cuda.launched(self.size > 0)
        host(self).fill(value)

    def squeeze(self, axis=None):
        return ndarray(host(self).squeeze(axis))

    def ravel(self):
        made = host(self).ravel()
        cuda.launched(not np.may_share_memory(made, self._inside))
        return ndarray(made)

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


def copied(old, new):
    """Copies the arrays of a new result into those of an old one."""
    if isinstance(old, ndarray):
        if not np.may_share_memory(old._inside, new._inside):
            old._inside[...] = new._inside
    elif isinstance(old, (tuple, list)):
        for a, b in zip(old, new, strict=True):
            copied(a, b)


COMPUTING = [name for name, found in vars(ndarray).items() if getattr(found, "_computes", False)]
MOVING = ["__getitem__", "__setitem__", "__iadd__", "astype", "copy", "reshape", "fill", "ravel"]
for _name in (*COMPUTING, *MOVING, "sum", "max", "min", "prod", "any", "all"):
    setattr(ndarray, _name, cuda.recorded(getattr(ndarray, _name), copied))

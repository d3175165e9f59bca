"""Helper functions of CuPy modules that differ from those of NumPy modules, and the modules they import."""

from __future__ import annotations

# DLPack is tried first: it passes the current stream to the library that wrote the array, which makes the
# stream wait (cupy/_core/dlpack.pyx of 14.2.0, lines 555-575), and it has bfloat16. The CUDA array interface
# has no type for bfloat16: such arrays arrive as two bytes without meaning, V2, and are rejected.
HELPERS: dict[str, str] = {
    "_array": '''def _array(name, value, dtype, shape=None, declared=None):
    """An input as a CuPy array in a type: the memory of another library on the device is not copied."""
    if isinstance(value, cp.ndarray):
        array = value
    elif hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] in (2, 13):  # CUDA, CUDA managed
        array = cp.from_dlpack(value.detach() if getattr(value, "requires_grad", False) else value)
    elif hasattr(value, "__cuda_array_interface__"):
        array = cp.asarray(value)
    elif hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0:
        array = cp.asarray(float(value), dtype=dtype)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(
            f"{name} is a {kind} outside of the GPU, but this code runs there and takes CuPy arrays: "
            f"pass cupy.asarray({name}), or lower with backend='numpy'"
        )
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    current, found = cp.cuda.Device().id, array.device.id
    if found != current:
        raise ValueError(
            f"the inputs must lie on the current device, {current}, but {name} is on device {found}: "
            f"copy it there, or call within cupy.cuda.Device({found})"
        )
    fits = shape is None or array.ndim == (len(shape) if isinstance(shape, tuple) else shape)
    if isinstance(shape, tuple) and fits:
        fits = all(want in (None, n) for want, n in zip(shape, array.shape))
    if not fits:
        raise ValueError(f"{name} must have shape {declared or shape}, not {array.shape}")
    return array if dtype is None else array.astype(dtype, copy=False)
''',
    "_whole": '''def _whole(name, value, dtype, shape=None, declared=None):
    """An input that numbers rows or classes: floats are looked at first, which waits."""
    array = _array(name, value, None, shape, declared)
    made = array.astype(dtype, copy=False)
    if array.dtype.kind not in "iub" and (made != array).any().item():
        raise IndexError(f"{name} must hold integers: it numbers rows or classes")
    return made
''',
    "_solve_triangular": '''def _solve_triangular(matrix, right, lower):
    if matrix.ndim == 2:
        return cupyx.scipy.linalg.solve_triangular(matrix, right, lower=lower)
    return cp.linalg.solve(cp.tril(matrix) if lower else cp.triu(matrix), right)
''',
    "_affine_scan": '''def _affine_scan(a, b, matrices, backward):
    if backward:
        return _affine_scan(a[::-1], b[::-1], matrices, False)[::-1]
    if len(b) < 2:
        return b.copy()
    times = _stacked if matrices else cp.multiply
    late, even = a[1::2], slice(0, len(b)//2*2, 2)
    odd = _affine_scan(times(late, a[even]), times(late, b[even]) + b[1::2], matrices, False)
    known = odd[:(len(b) - 1)//2]
    h = b.copy()
    h[1::2] = odd
    h[2::2] += times(a[2::2], known)
    return h
''',
    "_stacked": '''def _stacked(a, b):
    axes = tuple(range(a.ndim))
    return _product(a, axes, b, axes, a.ndim - 2, 1)
''',
    "_matrix_power": '''def _matrix_power(matrix, exponent):
    if exponent < 0:
        return _matrix_power(cp.linalg.inv(matrix), -exponent)
    if exponent < 2:
        one = cp.eye(matrix.shape[-1], dtype=matrix.dtype)
        return matrix.copy() if exponent else cp.zeros_like(matrix) + one
    root = _matrix_power(matrix, exponent//2)
    square = _stacked(root, root)
    return _stacked(square, matrix) if exponent % 2 else square
''',
    "_matrix_power_derivative": '''def _matrix_power_derivative(matrix, direction, exponent):
    n = matrix.shape[-1]
    top = cp.concatenate([matrix, direction], axis=-1)
    bottom = cp.concatenate([cp.zeros_like(matrix), matrix], axis=-1)
    return _matrix_power(cp.concatenate([top, bottom], axis=-2), int(exponent))[..., :n, n:]
''',
    "adjugate_of": '''def adjugate_of(a):
    u, s, vt = singular_values(a)
    sign = cp.round(cp.linalg.det(u)*cp.linalg.det(vt))[..., None, None]
    scaled = products_without(s)[..., None]*cp.swapaxes(u, -1, -2)
    return _stacked(sign*cp.swapaxes(vt, -1, -2), scaled)
''',
    "adjugate_tangent_of": '''def adjugate_tangent_of(a, e):
    u, s, vt = singular_values(a)
    sign = cp.round(cp.linalg.det(u)*cp.linalg.det(vt))[..., None, None]
    diagonal = cp.eye(s.shape[-1], dtype=s.dtype)
    pairs = products_without(s[..., None, :]*(1 - diagonal) + diagonal)*(1 - diagonal)
    u, v = cp.swapaxes(u, -1, -2), cp.swapaxes(vt, -1, -2)
    moved = _stacked(_stacked(u, e), v)
    traces = _stacked(pairs, (moved*diagonal).sum(axis=-1)[..., None])
    return _stacked(_stacked(sign*v, diagonal*traces - pairs*moved), u)
''',
    "_lower_triangle": '''def _lower_triangle(matrix, diagonal):
    return cp.where(cp.eye(matrix.shape[-1], dtype=bool), diagonal*matrix, cp.tril(matrix))
''',
    "_log_determinant": '''def _log_determinant(matrix):
    sign, logarithm = cp.linalg.slogdet(matrix)
    return cp.where(sign < 0, matrix.dtype.type(cp.nan), logarithm)
''',
    "_normal_ratio": '''def _normal_ratio(x):
    return x.dtype.type(0.7978845608028654)/cupyx.scipy.special.erfcx(x.dtype.type(-0.7071067811865476)*x)
''',
    "_normal_excess": '''def _normal_excess(x):
    t, tail = cp.maximum(-x, 5), 0
    for k in range(32, 0, -1):
        tail = k/(t + tail)
    return cp.where(x < -5, tail, _normal_ratio(x) + x)
''',
    "_exponentials": '''def _exponentials(x, axes):
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    highest = cp.where(cp.isfinite(highest), highest, x.dtype.type(0))
    return highest, cp.exp(x - highest).sum(axis=axes, keepdims=True)
''',
    "_softmax": '''def _softmax(x, axes):
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    e = cp.exp(x - cp.where(cp.isfinite(highest), highest, x.dtype.type(0)))
    e /= e.sum(axis=axes, keepdims=True)
    return e
''',
    "_log_softmax_tangent": '''def _log_softmax_tangent(p, t, axes):
    t = t - cp.where(p > 0.9, t, t.dtype.type(0)).sum(axis=axes, keepdims=True)
    return t - (p*t).sum(axis=axes, keepdims=True)
''',
    "_softmax_tangent": '''def _softmax_tangent(p, t, axes):
    return p*_log_softmax_tangent(p, t, axes)
''',
    "_log_softmax_cotangent": '''def _log_softmax_cotangent(p, t, axes):
    y, zero = t - p*t.sum(axis=axes, keepdims=True), t.dtype.type(0)
    return cp.where(p > 0.9, -cp.where(p > 0.9, zero, y).sum(axis=axes, keepdims=True), y)
''',
    "_newton": '''def _newton(equations, x):
    residual, slope = equations(x)
    tolerance = 450*float(cp.finfo(x.dtype).eps)
    for _ in range(100):
        move = cp.linalg.solve(slope, residual)
        small = (abs(move).max() <= tolerance*(1 + abs(x).max())).item()
        scale = 1.0
        for _ in range(30):
            new = x - scale*move
            new_residual, new_slope = equations(new)
            if small or (abs(new_residual).max() < abs(residual).max()).item():
                break
            scale /= 2
        x, residual, slope = new, new_residual, new_slope
        if small or not residual.any().item():
            return x
    raise ArithmeticError(f"Newton did not converge; it stopped at x = {x}, F = {residual}")
''',
}
"""Helper functions whose text differs from NumPy's in more than the library's name."""

IMPORTS: dict[str, str] = {
    "_solve_triangular": "import cupyx.scipy.linalg",
    "_normal_ratio": "import cupyx.scipy.special",
    "_scatter_add_atomic": "import cupyx",
}
"""The modules that a helper imports."""

PRODUCTS = ("_matrix_power_derivative", "adjugate_of", "adjugate_tangent_of")
"""The helpers that multiply matrices, by cuBLAS with a stated type of sums and not by CuPy's own operator."""

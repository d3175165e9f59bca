"""The source of helper functions in modules of NumPy code; most can write into a given array."""

SIGMOID = '''def _sigmoid(x, out=None):
    """1/(1 + exp(-x)), which is 0 where the exponential overflows."""
    out = np.negative(x, out)
    np.exp(out, out)
    out += 1
    return np.reciprocal(out, out)
'''

SILU = '''def _silu(x):
    """x/(1 + exp(-x))."""
    y = _sigmoid(x)
    y *= x
    return y
'''

SOFTPLUS = '''def _softplus(x):
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))."""
    e = np.abs(x)
    np.negative(e, e)
    np.exp(e, e)
    np.log1p(e, e)
    e += np.maximum(x, 0)
    return e
'''

SECH = '''def _sech(x, out=None):
    """1/cosh(x) = 2e/(1 + e*e) with e = exp(-|x|), which does not overflow."""
    out = np.abs(x, out)
    np.negative(out, out)
    np.exp(out, out)
    square = out*out
    square += 1
    out /= square
    out += out
    return out
'''

ERFC = '''def _erfc(x):
    """The complementary error function in single precision, to six units in the last place.

    erfc(z) = t Q(t) exp(-z*z) for z >= 0, t = 3/(3 + z), Q of degree 7 with the smallest relative error;
    z*z = h*h + (z - h)*(z + h) with the leading 12 bits h of z, so that its rounding does no harm.
    """
    result = np.empty(x.shape, x.dtype)
    given, made, length = x.reshape(-1), result.reshape(-1), max(1, min(x.size, 32768))  # in the cache
    places = np.empty(5*length + 64, x.dtype)
    places = places[-places.ctypes.data//4 % 16:]  # on cache lines: arithmetic is twice as fast there
    z, t, p, h, limit = (places[k*length:(k + 1)*length] for k in range(5))
    limit.fill(20)
    for k in range(0, x.size, length):
        y, out = given[k:k + length], made[k:k + length]
        if y.size < length:
            z, t, p, h, limit = z[:y.size], t[:y.size], p[:y.size], h[:y.size], limit[:y.size]
        np.abs(y, z)
        np.minimum(z, limit, out=z)
        np.add(z, 3, t)
        np.divide(3, t, t)
        np.multiply(t, -0.12511475384235382, p)
        for c in (0.4031665027141571, -0.2663557529449463, 0.3394627273082733, 0.08063492923974991,
                  0.19389408826828003, 0.18615497648715973, 0.18815715610980988):
            p += c
            p *= t
        np.bitwise_and(z.view(np.int32), -4096, h.view(np.int32))
        np.subtract(h, z, t)
        z += h
        t *= z
        np.exp(t, t)
        p *= t
        np.multiply(h, h, h)
        np.negative(h, h)
        np.exp(h, h)
        p *= h
        sign, bits = t.view(np.uint32), p.view(np.uint32)
        np.bitwise_and(y.view(np.uint32), 0x80000000, sign)
        bits |= sign
        sign >>= 1  # the bits of 2, or of 0
        np.add(p, t, out)  # erfc(-z) = 2 - erfc(z)
    return result
'''

CLEAR = '''def _clear(flat, gaps, out=None):
    """A flat array with zeros after the first `width` of every `step` elements, but the last."""
    if out is None:
        out = flat.copy()
    elif out is not flat:
        out[...] = flat
    for width, step in gaps:
        if step - width == 1:
            out[width::step] = 0
        elif out.size > step:
            size, gap = out.itemsize, ((out.size - 1)//step, step - width)
            np.ndarray(gap, out.dtype, out, width*size, (step*size, size))[...] = 0
    return out
'''

LIMIT = '''def _limit(mask, dtype):
    """Infinity where the mask holds, minus infinity elsewhere."""
    return np.where(mask, dtype(np.inf), dtype(-np.inf))
'''

WITHOUT_OUT = ("_erfc", "_silu", "_softplus")
"""Helpers without an argument ``out``: they always allocate their result."""

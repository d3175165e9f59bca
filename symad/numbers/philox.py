"""Philox 4×32-10 on NumPy arrays: random bits as a pure function of a key and a counter.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), section 3.3
and table 2; the test vectors are those of their library Random123.

A key is four integers of 16 bits, lowest first: floats of any precision from float32 up represent them
exactly, so a key is an array like any other in programs. The functions need nothing else of symad: generated
NumPy code contains their text. Their names begin with an underscore, as no user's symbol does there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.core.arrays import Array


def _philox(counter: Any, key: Any) -> Any:
    """Ten rounds on four words of 32 bits, in arrays of uint64, under two words of key."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left, right = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c2 = (right >> half) ^ c1 ^ k0, (left >> half) ^ c3 ^ k1
        c1, c3 = right & low, left & low
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return c0, c1, c2, c3


def _key_words(key: Array) -> tuple[Array, ...]:
    """The two words of 32 bits of keys (..., 4), each (..., 1)."""
    parts = np.asarray(key)
    numbers = parts.astype(np.int64)
    wrong = (numbers != parts) | (numbers < 0) | (numbers > 65535)
    if parts.shape[-1:] != (4,) or wrong.any():
        raise ValueError("a random key is four integers in 0..65535: make one by symad.functions.key")
    words, shift = numbers.astype(np.uint64), np.uint64(16)
    return words[..., 0:1] | words[..., 1:2] << shift, words[..., 2:3] | words[..., 3:4] << shift


def _uniform(key: Any, shape: Any, dtype: Any) -> Any:
    """Uniform numbers (..., *shape) in (0, 1), for keys (..., 4): element i from block i // 2 of the stream.

    The highest 52 of its 64 bits give (m + 1/2)/2⁵² in float64 and the highest 23 give (m + 1/2)/2²³ in
    float32, both exact: the float32 number is the middle of the cell that holds the float64 number.
    """
    words = _key_words(key)
    lead, count = words[0].shape[:-1], 1
    for dim in shape:
        count *= dim
    result = np.empty((*lead, count + count % 2), dtype=dtype)
    zero, half = np.zeros(1, dtype=np.uint64), np.uint64(32)
    for start in range(0, result.shape[-1], 8192):  # a piece stays in the cache
        block = np.arange(start // 2, min(start + 8192, result.shape[-1]) // 2, dtype=np.uint64)
        bits = _philox((block & np.uint64(0xFFFFFFFF), block >> half, zero, zero), words)
        for place in (0, 1):
            high, low = bits[2 * place], bits[2 * place + 1]
            if result.dtype == np.float32:
                numbers = ((high >> np.uint64(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)
            else:
                numbers = ((high << np.uint64(20) | low >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
            result[..., start + place : start + 8192 : 2] = numbers
    return result[..., :count].reshape((*lead, *shape))[()]


def _fold_in(key: Any, number: Any, dtype: Any) -> Any:
    """A new key (..., 4) for each key (..., 4) and integer (...): block ``number`` of another stream."""
    numbers = np.asarray(number)[..., None]
    block = numbers.astype(np.int64)
    if ((block != numbers) | (block < 0)).any():
        raise ValueError("fold_in takes integers from 0 up")
    block = block.astype(np.uint64)
    zero, one = np.zeros(1, dtype=np.uint64), np.ones(1, dtype=np.uint64)
    counter = block & np.uint64(0xFFFFFFFF), block >> np.uint64(32), zero, one
    first, second, _, _ = _philox(counter, _key_words(key))
    low, half = np.uint64(65535), np.uint64(16)
    return np.concatenate([first & low, first >> half, second & low, second >> half], axis=-1).astype(dtype)

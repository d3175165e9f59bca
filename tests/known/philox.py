"""Philox as published: test vectors and the literal definition.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011:
section 3.3 for the round, table 2 for the constants; the vectors are those of the authors' library Random123,
file ``tests/kat_vectors``, lines ``philox4x32 10``.
"""

VECTORS = [  # counter, key, result, in words of 32 bits
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]

CONSTANTS = {  # word size: multipliers, additions to the key
    32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: ((0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)),
}


def words(text):
    """Hexadecimal words as integers."""
    return [int(word, 16) for word in text.split()]


def philox(counter, key, bits=32, rounds=10):
    """Philox 4×bits on Python's integers, word by word: the slow, literal definition."""
    (m0, m1), additions = CONSTANTS[bits]
    mask = (1 << bits) - 1
    l0, r0, l1, r1 = counter[1], counter[0], counter[3], counter[2]
    k0, k1 = key
    for _ in range(rounds):
        high0, low0 = divmod(r0 * m0, 1 << bits)
        high1, low1 = divmod(r1 * m1, 1 << bits)
        r0, l0, r1, l1 = high1 ^ l0 ^ k0, low1, high0 ^ l1 ^ k1, low0
        k0, k1 = (k0 + additions[0]) & mask, (k1 + additions[1]) & mask
    return [r0, l0, r1, l1]

"""Complex numbers and Fourier transforms are refused by name, wherever they enter."""

import mpmath
import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.signal
import sympy as sp

import symad
from symad.errors import SymadError
from symad.numeric import lower

x = sp.Symbol("x", real=True)
z = sp.Symbol("z", complex=True)
SQUARE = symad.trace(x**2)
VECTOR = symad.trace(lambda a: a * a, [(2,)])


def traced(f):
    return lambda: symad.trace(f, [(4, 4)])


CASES = {
    "I": (lambda: symad.gradient(sp.exp(sp.I * x)), "imaginary unit"),
    "a matrix with I": (lambda: symad.trace(sp.Matrix([[x, sp.I]])), "imaginary unit"),
    "a complex symbol": (lambda: symad.trace(z**2), "symbol z"),
    "its real part": (lambda: symad.trace(sp.re(z)), "symbol z"),
    "its conjugate": (lambda: symad.check(z * sp.conjugate(z)), "symbol z"),
    "an imaginary symbol": (lambda: symad.trace(sp.Symbol("w", imaginary=True) ** 2), "symbol w"),
    "a Fourier transform": (
        lambda: symad.trace(sp.FourierTransform(sp.exp(-(x**2)), x, sp.Symbol("k"))), "FourierTransform",
    ),
    "a Laplace transform": (
        lambda: symad.trace(sp.LaplaceTransform(sp.Function("f")(x), x, sp.Symbol("s"))), "LaplaceTransform",
    ),
    "times 1j": (traced(lambda a: a * 1j), "1j of type complex"),
    "1j plus": (traced(lambda a: 1j + a), "1j of type complex"),
    "to the power of 1j": (traced(lambda a: a**1j), "1j of type complex"),
    "divided by 1j": (traced(lambda a: a / np.complex128(1j)), "1j of type complex"),
    "a complex array": (traced(lambda a: a + np.zeros(4, complex)), "complex128"),
    "astype": (traced(lambda a: a.astype(complex)), "complex128"),
    "angle": (traced(np.angle), "np.angle"),
    "eigenvalues": (traced(np.linalg.eigvals), "np.linalg.eigvals"),
    "an example": (lambda: symad.trace(lambda a: a, [np.zeros(2, complex)]), "complex128"),
    "a value": (lambda: SQUARE(1j), "x was given"),
    "a value of NumPy": (lambda: SQUARE(np.complex64(1j)), "x was given"),
    "a value of SymPy": (lambda: SQUARE(2 + 3 * sp.I), "x was given"),
    "a value of mpmath": (lambda: SQUARE(mpmath.mpc(1, 1)), "x was given"),
    "a dual value": (lambda: SQUARE(symad.Dual(1j, 1.0)), "x was given"),
    "an array of values": (lambda: VECTOR(np.ones(2) * 1j), "complex128"),
    "an array of objects": (lambda: VECTOR(np.array([sp.I, 1], dtype=object)), "not real numbers"),
    "a dtype": (lambda: lower(SQUARE, dtype="complex128"), "complex128"),
    **{
        f"np.fft.{n}": (traced(getattr(np.fft, n)), f"np.fft.{n}.*values are real")
        for n in ("fft", "ifft", "rfft", "irfft", "fft2", "fftn", "hfft", "rfftn")
    },
    **{
        f"scipy.fft.{n}": (traced(getattr(scipy.fft, n)), f"scipy.fft.{n}.*values are real")
        for n in ("fft", "ifft", "rfft", "fftn", "dct", "dst")
    },
    "inside of SciPy": (
        traced(lambda a: scipy.signal.fftconvolve(a, a)), r"scipy.fft.rfftn.*values are real",
    ),
    "inside of SciPy, in parts": (
        traced(lambda a: scipy.signal.fftconvolve(a[0], np.ones(3))), r"scipy.fft.rfftn.*values are real",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused_by_name(name):
    act, message = CASES[name]
    with pytest.raises(SymadError, match=f"(?s){message}"):
        act()


def test_an_equality_of_complex_numbers_is_undecided_with_the_reason():
    certificate = symad.equal(sp.exp(sp.I * x), sp.cos(x))
    assert certificate.status == "undecided" and "imaginary unit" in str(certificate)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_kernels_refuse_complex_values_by_name(backend):
    with pytest.raises((SymadError, TypeError), match="a must hold real numbers"):
        lower(VECTOR, backend=backend)(np.ones(2) * 1j)


def test_what_is_real_goes_on():
    """Transforms of plain numbers inside of a traced function, and real parts of real symbols."""
    weights = np.fft.rfft([1.0, 2.0, 0.0]).real
    graph = symad.trace(lambda a: a * scipy.fft.rfft(np.array([1.0, 2.0, 0.0])).real, [(2,)])
    assert graph(np.ones(2)).tolist() == weights.tolist()
    assert symad.trace(sp.re(x) + sp.im(x) + sp.conjugate(x))(3.0) == 6.0
    assert SQUARE(sp.Rational(1, 2)) == sp.Rational(1, 4)
    assert symad.trace(lambda a: np.real(a) + np.conj(a), [(2,)])(np.ones(2)).tolist() == [2, 2]


def test_compiled_filters_of_scipy_are_named():
    with pytest.raises(SymadError, match=r"scipy\.ndimage"):
        symad.trace(lambda a: scipy.ndimage.gaussian_filter(a, 1.0), [(6,)])

"""Exponentials, logarithms and powers with the same bits on every machine.

`np.exp`, `np.log` and the mathematical library of the system choose their instructions, and with them their last bit,
by the CPU. Those of this module use only what IEEE 754 rounds in one way (+ − × ÷ of two numbers, exact scaling by
powers of two) and tables that are computed in decimal arithmetic. Intermediate values are sums of two numbers, so about
999 of 1000 results are correctly rounded, and all are within 0.55 units in the last place; where the exact value is a
floating-point number (2 ** 10, log2 of 8, 100 ** 0.5), the result is that number.

`exp`, `expm1`, `log`, `log1p`, `log2`, `log10` and `power` take numbers or arrays. `exp_one`, `log_one`, `log2_one`
and `power_one` take one number, give the same bits, and may be called in kernels.

All take any float. exp is inf above 709.78 and 0 below −745.13; the logarithm of 0 is −inf and that of a negative
number is nan; a power of a negative number is nan unless the exponent is whole. No warning is given. Results below
2.3e-308 are rounded twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats

_BLOCK = 1 << 13  # elements of a block, whose intermediate results fit in the cache
_STEPS = 64  # of the table of 2 ** (j / 64)
_CELLS = 128  # of the table of logarithms, for each unit
_SPLIT = 134217729.0  # 2 ** 27 + 1 splits a number into two halves whose products are exact
_HALF_ROOT = math.sqrt(0.5)
_MOST, _LEAST = 709.782712893384, -745.1332191019412  # range in which exp is above 0 and below inf
_FAR = 1e4  # exp of this is inf, and of its negative 0
_LARGE = 2.0**70  # as an exponent it makes 0, 1 or inf of any number
_DIGITS = Context(prec=60)


def _pieces(value: Decimal, *bits: int) -> list[float]:
    """Return numbers that add up to a value: multiples of 2 ** −bits, then the rest."""
    pieces = []
    for shift in bits:
        part = int((value * 2**shift).to_integral_value())
        pieces.append(math.ldexp(float(part), -shift))
        value -= Decimal(pieces[-1])
    return [*pieces, float(value)]


with localcontext(_DIGITS):
    _LN2 = Decimal(2).ln()
    _STEP, _STEP_2, _STEP_3 = _pieces(_LN2 / _STEPS, 42, 78)  # ln 2 / 64
    _LN2_HIGH, _LN2_LOW = _pieces(_LN2, 42)
    _PER_LN2, _PER_LN2_LOW = _pieces(1 / _LN2, 52)
    _PER_LN10, _PER_LN10_LOW = _pieces(1 / Decimal(10).ln(), 53)
    _ROOT, _ROOT_LOW = np.array(
        [_pieces((j * _LN2 / _STEPS).exp(), 52) for j in range(_STEPS)]
    ).T.copy()  # 2 ** (j / 64)
    _INVERSE = np.array([1.0, *(_CELLS / cell for cell in range(1, 2 * _CELLS))])  # about 1 / m of m in a cell
    _CELL_LOG, _CELL_LOG_LOW = np.array([_pieces(-Decimal(float(inverse)).ln(), 42) for inverse in _INVERSE]).T.copy()
_STEPS_PER_UNIT = _STEPS * _PER_LN2


@kernel(allocates=False)
def _exp_sum(x: Any, x_low: Any, k: Any, root: Any, root_low: Any) -> Any:
    """Return exp(x + x_low) / 2 ** ⌊k / 64⌋ as a sum of two numbers; root is 2 ** (k mod 64 / 64)."""
    near = x - k * _STEP  # exact, as k · _STEP is
    tail = k * _STEP_2
    r = near - tail
    back = r - near
    low = (near - (r - back)) - (tail + back) - k * _STEP_3 + x_low
    series = 1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320)))
    more = low + r * (low + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * series))))  # exp(r) = 1 + r + more
    high = root * r  # and its rounding error, by T. J. Dekker
    wide = _SPLIT * root
    root_1 = wide - (wide - root)
    root_2 = root - root_1
    wide = _SPLIT * r
    r_1 = wide - (wide - r)
    r_2 = r - r_1
    lost = ((root_1 * r_1 - high) + root_1 * r_2 + root_2 * r_1) + root_2 * r_2
    total = root + high
    return total, (high - (total - root)) + (lost + (root_low + (root * more + root_low * r)))


@kernel(allocates=False)
def _log_sum(m: Any, m_low: Any, e: Any, inverse: Any, cell_log: Any, cell_log_low: Any) -> Any:
    """Return log((m + m_low) 2 ** e) as a sum of two; inverse is about 1 / m, cell_log its −log."""
    product = m * inverse
    wide = _SPLIT * m
    m_1 = wide - (wide - m)
    m_2 = m - m_1
    wide = _SPLIT * inverse
    i_1 = wide - (wide - inverse)
    i_2 = inverse - i_1
    lost = ((m_1 * i_1 - product) + m_1 * i_2 + m_2 * i_1) + m_2 * i_2 + m_low * inverse
    first = product - 1.0
    r = first + lost
    r_low = lost - (r - first)
    wide = _SPLIT * r
    r_1 = wide - (wide - r)
    r_2 = r - r_1
    square = r * r
    square_low = ((r_1 * r_1 - square) + 2.0 * (r_1 * r_2)) + r_2 * r_2
    series = 1 / 7 - r * (1 / 8 - r * (1 / 9 - r * (1 / 10)))
    cubes = square * r * (1 / 3 - r * (1 / 4 - r * (1 / 5 - r * (1 / 6 - r * series))))
    whole = e * _LN2_HIGH + cell_log  # exact
    total = whole + r
    back = total - whole
    low = (whole - (total - back)) + (r - back)
    half = -0.5 * square
    result = total + half
    back = result - total
    low += (total - (result - back)) + (half - back)
    low += e * _LN2_LOW + cell_log_low + (r_low - r * r_low - 0.5 * square_low + cubes)
    high = result + low
    return high, low - (high - result)


def _of_arrays(kernel_of_numbers: Any) -> Any:
    """Return the Python function of a kernel of numbers, which also works on arrays."""
    return kernel_of_numbers.py_func


@kernel(allocates=False)
def _product(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """Return (a + a_low)(b + b_low) as a sum of two numbers."""
    high = a * b
    wide = _SPLIT * a
    a_1 = wide - (wide - a)
    a_2 = a - a_1
    wide = _SPLIT * b
    b_1 = wide - (wide - b)
    b_2 = b - b_1
    low = (((a_1 * b_1 - high) + a_1 * b_2 + a_2 * b_1) + a_2 * b_2) + (a * b_low + a_low * b)
    total = high + low
    return total, low - (total - high)


@kernel(allocates=False)
def _exp_parts(x: float, x_low: float) -> tuple[float, float, int]:
    """Return a, b and n of exp(x + x_low) = (a + b) 2 ** n, for x of at most _FAR."""
    k = math.floor(x * _STEPS_PER_UNIT + 0.5)
    high, low = _exp_sum(x, x_low, k, _ROOT[k & (_STEPS - 1)], _ROOT_LOW[k & (_STEPS - 1)])
    return high, low, k >> 6


@kernel(allocates=False)
def _exp_of_two(x: float, x_low: float) -> float:
    """Return exp(x + x_low)."""
    if np.isnan(x):
        return x
    if x > _MOST:
        return np.inf
    if x < _LEAST:
        return 0.0
    high, low, n = _exp_parts(x, x_low)
    if n > 1000:  # 2 ** 1024 overflows
        return math.ldexp(math.ldexp(high + low, 1000), n - 1000) if high + low < 2.0 or n < 1023 else np.inf
    return math.ldexp(high + low, n)


@kernel(allocates=False)
def _log_of_one(x: float) -> tuple[float, float]:
    """Return log x as a sum of two numbers, for x above 0 and below inf."""
    m, e = math.frexp(x)
    if m < _HALF_ROOT:
        m, e = 2.0 * m, e - 1
    cell = math.floor(m * _CELLS + 0.5)
    high, low = _log_sum(m, 0.0, e, _INVERSE[cell], _CELL_LOG[cell], _CELL_LOG_LOW[cell])
    return high, low


@kernel(allocates=False)
def exp_one(x: float) -> float:
    """Return e ** x."""
    return _exp_of_two(float(x), 0.0)


@kernel(allocates=False)
def log_one(x: float) -> float:
    """Return the natural logarithm."""
    x = float(x)
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else np.inf if x > 0.0 else np.nan
    high, low = _log_of_one(x)
    return high + low


@kernel(allocates=False)
def log2_one(x: float) -> float:
    """Return the logarithm to base 2."""
    x = float(x)
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else np.inf if x > 0.0 else np.nan
    high, low = _log_of_one(x)
    high, low = _product(high, low, _PER_LN2, _PER_LN2_LOW)
    return float(high + low)


@kernel(allocates=False)
def power_one(x: float, y: float) -> float:
    """Return x ** y."""
    x, y = float(x), float(y)
    if y == 0.0 or x == 1.0:
        return 1.0
    if np.isnan(x) or np.isnan(y):
        return np.nan
    sign = 1.0
    if x < 0.0 and abs(y) < np.inf:
        if y != np.floor(y):
            return np.nan
        sign = -1.0 if y / 2 != np.floor(y / 2) else 1.0
    x = abs(x)
    if x == 1.0:
        return sign
    if x in (0.0, np.inf):
        return sign * (np.inf if (x > 0.0) == (y > 0.0) else 0.0)
    high, low = _log_of_one(x)
    high, low = _product(high, low, min(max(y, -_LARGE), _LARGE), 0.0)
    return sign * _exp_of_two(high, low)


class _Elementwise:
    """A function of one number or of each element of an array, with the same bits for both."""

    def __init__(self, block: Callable[..., Any], scalar: Callable[..., Any] | None = None):
        self._block, self._scalar = block, scalar

    @overload
    def __call__(self, x: float) -> float: ...
    @overload
    def __call__(self, x: ArrayLike) -> Floats: ...
    def __call__(self, x: Any) -> Any:
        return _elementwise(self._block, self._scalar, x)


@overload
def power(x: float, y: float) -> float: ...
@overload
def power(x: ArrayLike, y: ArrayLike) -> Floats: ...
def power(x: Any, y: Any) -> Any:
    """Return x ** y of numbers or of each element."""
    return _elementwise(_power_block, power_one, x, y)


def _elementwise(block: Callable[..., Any], scalar: Callable[..., Any] | None, *values: Any) -> Any:
    """Apply `scalar` to numbers, or `block` to blocks of arrays; without `scalar` a number is an array of one."""
    if all(isinstance(value, int | float) for value in values):
        if scalar is not None:
            return float(scalar(*map(float, values)))
        return float(_elementwise(block, None, *(np.array([value]) for value in values))[0])
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values))
    flat = [array.reshape(-1) for array in arrays]
    result = np.empty(flat[0].size)
    with np.errstate(all="ignore"):
        for begin in range(0, result.size, _BLOCK):
            result[begin : begin + _BLOCK] = block(*(array[begin : begin + _BLOCK] for array in flat))
    shaped = result.reshape(arrays[0].shape)
    return shaped if shaped.ndim else shaped[()]


def _exp_sums(x: Any, x_low: Any) -> Any:
    """Return arrays a, b and n of exp(x + x_low) = (a + b) 2 ** n."""
    x = np.clip(np.where(np.isnan(x), 0.0, x), -_FAR, _FAR)
    k = np.floor(x * _STEPS_PER_UNIT + 0.5)
    whole = k.astype(np.int64)
    place = whole & (_STEPS - 1)
    high, low = _of_arrays(_exp_sum)(x, x_low, k, _ROOT[place], _ROOT_LOW[place])
    return high, low, (whole >> 6).astype(np.int32)


def _exp_block_of_two(x: Any, x_low: Any) -> Any:
    high, low, n = _exp_sums(x, x_low)
    result = np.ldexp(high + low, n)
    result[x > _MOST], result[x < _LEAST] = np.inf, 0.0
    return np.where(np.isnan(x), x, result)


def _exp_block(x: Any) -> Any:
    return _exp_block_of_two(x, 0.0)


def _expm1_block(x: Any) -> Any:
    high, low, n = _exp_sums(x, 0.0)
    scaled, rest = np.ldexp(high, n), np.ldexp(low, n)
    less = scaled - 1.0
    back = less - scaled
    result = np.where(np.isfinite(scaled), less + (((scaled - (less - back)) - (1.0 + back)) + rest), np.inf)
    near = np.abs(x) < 0.5 * _STEP
    r = np.where(near, x, 0.0)
    series = 1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320)))
    result = np.where(near, r + r * r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * series))), result)
    result[x > _MOST], result[x < -40.0] = np.inf, -1.0
    return np.where(np.isnan(x), x, result)


def _log_sums(x: Any, x_low: Any = 0.0) -> Any:
    """Return log(x + x_low) as a sum of two arrays; x is above 0 and below inf."""
    m, e = np.frexp(x)
    below = m < _HALF_ROOT
    m, e = np.where(below, 2.0 * m, m), e - below
    cell = np.floor(m * _CELLS + 0.5).astype(np.int64)
    m_low = np.ldexp(x_low, -e)
    return _of_arrays(_log_sum)(m, m_low, e.astype(np.float64), _INVERSE[cell], _CELL_LOG[cell], _CELL_LOG_LOW[cell])


def _log_of_any(x: Any, log_x: Any) -> Any:
    """Return log_x where x is above 0 and finite, else the limit for 0, inf, negative numbers and nan."""
    return np.where((x > 0.0) & (x < np.inf), log_x, np.where(x == 0.0, -np.inf, np.where(x > 0.0, np.inf, np.nan)))


def _proper(x: Any) -> Any:
    return np.where((x > 0.0) & (x < np.inf), x, 1.0)


def _log_block(x: Any) -> Any:
    high, low = _log_sums(_proper(x))
    return _log_of_any(x, high + low)


def _log1p_block(x: Any) -> Any:
    total = 1.0 + x
    back = total - 1.0
    lost = (1.0 - (total - back)) + (x - back)
    good = (total > 0.0) & (total < np.inf)
    high, low = _log_sums(_proper(total), np.where(good, lost, 0.0))
    return np.where(np.abs(x) < 1e-300, x, _log_of_any(total, high + low))


def _log2_block(x: Any) -> Any:
    high, low = _of_arrays(_product)(*_log_sums(_proper(x)), _PER_LN2, _PER_LN2_LOW)
    return _log_of_any(x, high + low)


def _log10_block(x: Any) -> Any:
    high, low = _of_arrays(_product)(*_log_sums(_proper(x)), _PER_LN10, _PER_LN10_LOW)
    return _log_of_any(x, high + low)


def _power_block(x: Any, y: Any) -> Any:
    finite = np.abs(y) < np.inf
    is_whole = (y == np.floor(y)) & finite
    odd = is_whole & (y / 2 != np.floor(y / 2))
    size = np.abs(x)
    high, low = _of_arrays(_product)(
        *_log_sums(_proper(size)), np.clip(np.where(np.isnan(y), 1.0, y), -_LARGE, _LARGE), 0.0
    )
    result = _exp_block_of_two(high, low)
    result = np.where((size == 0.0) | (size == np.inf), np.where((size > 0.0) == (y > 0.0), np.inf, 0.0), result)
    result = np.where(size == 1.0, 1.0, result)
    result = np.where((x < 0.0) & odd, -result, result)
    result = np.where(np.isnan(x) | np.isnan(y) | ((x < 0.0) & finite & ~is_whole), np.nan, result)
    return np.where((y == 0.0) | (x == 1.0), 1.0, result)


exp = _Elementwise(_exp_block, exp_one)  # e ** x
expm1 = _Elementwise(_expm1_block)  # e ** x − 1
log = _Elementwise(_log_block, log_one)  # natural
log1p = _Elementwise(_log1p_block)  # log(1 + x)
log2 = _Elementwise(_log2_block, log2_one)
log10 = _Elementwise(_log10_block)

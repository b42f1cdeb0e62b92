"""Numbers from numbers: means, confidence intervals, whether two samples differ. No input or output."""

import math
from dataclasses import dataclass
from statistics import fmean, stdev

EXACT_LIMIT = 400  # up to so many pairs Mann-Whitney's distribution is counted out


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Of the incomplete beta function, by Lentz's method."""
    tiny, c = 1e-300, 1.0
    d = 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 500):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 + step * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + step / c
            c = c if abs(c) > tiny else tiny
            result *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return result


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized one."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, 1 - x) / b


def t_two_sided(t: float, freedom: float) -> float:
    """How probable a |t| at least as large is by chance."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_quantile(confidence: float, freedom: float) -> float:
    """The t that is exceeded, in either direction, with probability 1 - confidence."""
    low, high = 0.0, 1e7
    for _ in range(200):
        middle = (low + high) / 2
        if t_two_sided(middle, freedom) > 1 - confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def half_width(values: list[float], confidence: float = 0.95) -> float | None:
    """Of the mean's confidence interval, by Student; None with fewer than two values."""
    if len(values) < 2:
        return None
    return t_quantile(confidence, len(values) - 1) * stdev(values) / math.sqrt(len(values))


@dataclass(frozen=True)
class Comparison:
    """Whether two samples differ: the probability of such a difference by chance, or why there is none."""

    test: str
    p: float | None
    why: str = ""


def _errors(one: list[float], other: list[float]) -> tuple[float, float]:
    """Of the difference of two means: its standard error, and the degrees of freedom by Welch and Satterthwaite."""
    first, second = stdev(one) ** 2 / len(one), stdev(other) ** 2 / len(other)
    if first + second == 0:
        return 0.0, math.inf
    return math.sqrt(first + second), (first + second) ** 2 / (first ** 2 / (len(one) - 1) + second ** 2 / (len(other) - 1))


def difference_half_width(one: list[float], other: list[float], confidence: float = 0.95) -> float | None:
    """Of the interval of the difference of two means, by Welch; None with fewer than two values of each."""
    if min(len(one), len(other)) < 2:
        return None
    error, freedom = _errors(one, other)
    return t_quantile(confidence, freedom) * error if error else 0.0


def welch(one: list[float], other: list[float]) -> Comparison:
    """Whether the means differ, by Welch's t test (variances may differ)."""
    if min(len(one), len(other)) < 2:
        return Comparison("Welch", None, "needs two values of each")
    error, freedom = _errors(one, other)
    difference = fmean(one) - fmean(other)
    if not error:
        return Comparison("Welch", 1.0 if difference == 0 else 0.0, "the values of each do not vary")
    return Comparison("Welch", t_two_sided(difference / error, freedom))


def _counts_of_u(m: int, n: int) -> list[int]:
    """In how many orders of m and n values U is 0, 1, …, m n: the coefficients of a Gaussian binomial."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):
            counts[u] += counts[u - i]
    return counts


def mann_whitney(one: list[float], other: list[float]) -> Comparison:
    """Whether one's values tend to be larger: exact without ties in small samples, else by the normal
    distribution."""
    m, n = len(one), len(other)
    if min(m, n) < 1:
        return Comparison("Mann-Whitney", None, "needs a value of each")
    u = sum((a > b) + 0.5 * (a == b) for a in one for b in other)
    everything = sorted(one + other)
    ties = [everything.count(value) for value in set(everything)]
    if max(ties) == 1 and m * n <= EXACT_LIMIT:
        counts = _counts_of_u(m, n)
        low = int(min(u, m * n - u))
        return Comparison("Mann-Whitney", min(1.0, 2 * sum(counts[:low + 1]) / sum(counts)), "exact")
    total = m + n
    variance = m * n / 12 * (total + 1 - sum(t ** 3 - t for t in ties) / (total * (total - 1)))
    if variance == 0:
        return Comparison("Mann-Whitney", 1.0, "all values are equal")
    z = max(abs(u - m * n / 2) - 0.5, 0) / math.sqrt(variance)
    return Comparison("Mann-Whitney", math.erfc(z / math.sqrt(2)), "by the normal distribution")


TESTS = {"welch": welch, "mann-whitney": mann_whitney}


def holm(values: list[float | None]) -> list[float | None]:
    """Each p, corrected for how many were asked: Holm's method."""
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        corrected[index] = largest
    return corrected

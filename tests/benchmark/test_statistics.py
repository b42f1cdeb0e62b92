#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers against published tables and against counting by hand."""
import itertools
import random
import unittest

import bench  # noqa: F401 - the way to the modules
from vperfbench import statistics


class Tables(unittest.TestCase):
    def test_quantiles_of_t(self):
        for confidence, freedom, value in ((.95, 1, 12.706), (.95, 4, 2.776), (.95, 10, 2.228), (.99, 10, 3.169),
                                           (.95, 30, 2.042), (.90, 5, 2.015), (.95, 100000, 1.960)):
            self.assertAlmostEqual(statistics.t_quantile(confidence, freedom), value, 3)

    def test_interval(self):
        # 1 … 5: mean 3, deviation sqrt(2.5), t 2.776
        self.assertAlmostEqual(statistics.half_width([1, 2, 3, 4, 5]), 2.776445 * 2.5 ** .5 / 5 ** .5, 5)
        self.assertIsNone(statistics.half_width([1]))


class Welch(unittest.TestCase):
    def test_textbook(self):
        # Welch's example as given with many programs: t = -2.46, 24.99 degrees of freedom, p = 0.021.
        one = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
        other = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]
        self.assertAlmostEqual(statistics.welch(one, other).p, 0.021, 3)

    def test_interval_of_the_difference(self):
        """It ends at zero for the confidence that p leaves."""
        one, other = [10.0, 10.4, 9.9, 10.3], [9.7, 9.9, 10.0]
        difference = sum(one) / 4 - sum(other) / 3
        p = statistics.welch(one, other).p
        self.assertAlmostEqual(statistics.difference_half_width(one, other, 1 - p), difference, 6)
        self.assertEqual(statistics.difference_half_width([5, 5], [6, 6]), 0)
        self.assertIsNone(statistics.difference_half_width([5], [6, 7]))

    def test_without_variance(self):
        self.assertEqual(statistics.welch([5, 5], [5, 5]).p, 1)
        self.assertEqual(statistics.welch([5, 5], [6, 6]).p, 0)
        self.assertIsNone(statistics.welch([5], [6, 7]).p)

    def test_false_alarms(self):
        """About one in twenty comparisons of samples from one distribution differs at the 5% level."""
        dice = random.Random(7)
        alarms = sum(statistics.welch([dice.gauss(0, 1) for _ in range(5)], [dice.gauss(0, 1) for _ in range(8)]).p < .05
                     for _ in range(2000))
        self.assertTrue(60 <= alarms <= 140, alarms)


class MannWhitney(unittest.TestCase):
    def by_hand(self, one, other):
        """All ways to divide the values."""
        def u_of(first, second):
            return sum((a > b) for a in first for b in second)
        everything, seen, middle = one + other, u_of(one, other), len(one) * len(other) / 2
        distances = []
        for chosen in itertools.combinations(range(len(everything)), len(one)):
            first = [everything[i] for i in chosen]
            second = [everything[i] for i in range(len(everything)) if i not in chosen]
            distances.append(abs(u_of(first, second) - middle))
        return sum(d >= abs(seen - middle) for d in distances) / len(distances)

    def test_exact(self):
        dice = random.Random(3)
        for m, n in ((1, 1), (2, 3), (4, 4), (3, 6), (5, 5)):
            values = dice.sample(range(1000), m + n)
            found = statistics.mann_whitney(values[:m], values[m:])
            self.assertAlmostEqual(found.p, self.by_hand(values[:m], values[m:]), 9, (m, n))
            self.assertEqual(found.why, "exact")

    def test_ties(self):
        self.assertEqual(statistics.mann_whitney([1, 1, 1], [1, 1]).p, 1)
        large = statistics.mann_whitney(list(range(30)), [value + 20 for value in range(30)])
        self.assertLess(large.p, 1e-6)


class Holm(unittest.TestCase):
    def test_textbook(self):
        for found, value in zip(statistics.holm([.01, .04, .03, .005]), [.03, .06, .06, .02]):
            self.assertAlmostEqual(found, value)
        self.assertEqual(statistics.holm([.5, None, .9]), [1, None, 1])
        self.assertEqual(statistics.holm([]), [])


if __name__ == "__main__":
    unittest.main()

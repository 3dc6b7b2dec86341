import unittest

from tally import book
from tally.split import split


class SplitTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual(split(900, ["ana", "ben", "cleo"]), {"ana": 300, "ben": 300, "cleo": 300})

    def test_nobody(self):
        with self.assertRaises(ValueError):
            split(100, [])

    def test_no_cent_is_lost(self):
        for cents in (1000, 1001, 1, 2, 0):
            with self.subTest(cents=cents):
                self.assertEqual(sum(split(cents, ["ana", "ben", "cleo"]).values()), cents)

    def test_leftover_cents_go_to_the_first(self):
        self.assertEqual(split(1001, ["ana", "ben", "cleo"]), {"ana": 334, "ben": 334, "cleo": 333})

    def test_balances_add_up_to_zero(self):
        expenses = [("d", "ana", 1000, ""), ("d", "ben", 1, ""), ("d", "cleo", 777, "")]
        self.assertEqual(sum(balance for _, _, balance in book.balances(expenses).values()), 0)


if __name__ == "__main__":
    unittest.main()

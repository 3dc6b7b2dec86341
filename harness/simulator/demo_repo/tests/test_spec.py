"""What SPEC.md asks for. A feature's tests are skipped until its function exists."""

import importlib
import unittest


def feature(module, name):
    """The function, or None while it does not exist."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError:
        return None


parse_amount = feature("tally.money", "parse_amount")
settle = feature("tally.settle", "settle")
as_markdown = feature("tally.report", "as_markdown")


@unittest.skipIf(parse_amount is None, "SPEC 1 is not done")
class ParseAmountTest(unittest.TestCase):
    def test_good(self):
        for text, cents in {"12": 1200, "1234.5": 123450, "1,234.50": 123450, "1,234,567": 123456700, "0.05": 5}.items():
            with self.subTest(text=text):
                self.assertEqual(parse_amount(text), cents)

    def test_bad(self):
        for text in ("", "1,23.00", ",5", "12.345", "1.2.3", "abc", "-", "1,2345"):
            with self.subTest(text=text), self.assertRaises(ValueError) as caught:
                parse_amount(text)
            self.assertIn(repr(text), str(caught.exception))


@unittest.skipIf(settle is None, "SPEC 2 is not done")
class SettleTest(unittest.TestCase):
    def test_two(self):
        self.assertEqual(settle({"ana": 500, "ben": -500}), [("ben", "ana", 500)])

    def test_largest_first(self):
        balances = {"ana": 700, "ben": -300, "cleo": -600, "dan": 200}
        self.assertEqual(settle(balances), [("cleo", "ana", 600), ("ben", "dan", 200), ("ben", "ana", 100)])

    def test_equal_amounts_go_by_name(self):
        self.assertEqual(settle({"ben": 100, "ana": 100, "dan": -100, "cleo": -100}), [("cleo", "ana", 100), ("dan", "ben", 100)])

    def test_even(self):
        self.assertEqual(settle({"ana": 0, "ben": 0}), [])

    def test_must_add_up(self):
        with self.assertRaises(ValueError):
            settle({"ana": 1, "ben": -2})


@unittest.skipIf(as_markdown is None, "SPEC 3 is not done")
class MarkdownTest(unittest.TestCase):
    def test_table(self):
        text = as_markdown([("ana", 3000, 2130, 870), ("ben", 1260, 2130, -870)])
        self.assertEqual(
            text,
            "| Name | Paid | Share | Balance |\n| --- | ---: | ---: | ---: |\n| ana | 30.00 | 21.30 | 8.70 |\n| ben | 12.60 | 21.30 | -8.70 |\n",
        )

    def test_pipes_are_escaped(self):
        self.assertIn("| a\\|b |", as_markdown([("a|b", 0, 0, 0)]))


if __name__ == "__main__":
    unittest.main()

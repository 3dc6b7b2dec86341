import unittest

from tally import book, money, report

LINES = """\
# a trip
2026-05-01  ana   30.00  train
2026-05-01  ben   12.60  snacks and drinks

2026-05-02  cleo  47.40  bed
""".splitlines()


class BookTest(unittest.TestCase):
    def test_reads_expenses(self):
        expenses = book.read(LINES)
        self.assertEqual(len(expenses), 3)
        self.assertEqual(expenses[1], ("2026-05-01", "ben", 1260, "snacks and drinks"))

    def test_names_the_bad_line(self):
        with self.assertRaisesRegex(ValueError, "line 2"):
            book.read(["2026-05-01 ana 3", "2026-05-02 ben"])

    def test_adds_up(self):
        sums = book.balances(book.read(LINES))
        self.assertEqual(sums["ana"], (3000, 3000, 0))
        self.assertEqual(sums["cleo"], (4740, 3000, 1740))


class TextTest(unittest.TestCase):
    def test_formats(self):
        self.assertEqual(money.format_cents(-5), "-0.05")
        self.assertEqual(money.format_cents(123450), "1234.50")

    def test_report_has_one_line_a_person(self):
        text = report.as_text([("ana", 3000, 3000, 0), ("ben", 1260, 3000, -1740)])
        self.assertEqual(len(text.splitlines()), 3)
        self.assertIn("-17.40", text)


if __name__ == "__main__":
    unittest.main()

"""Expenses: read a file, add them up."""

from tally.money import read_plain
from tally.split import split


def read(lines):
    """Expenses ``(date, payer, cents, description)``; blank lines and lines with ``#`` are skipped."""
    out = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = line.split(None, 3)
        if len(parts) < 3:
            raise ValueError(f"line {number}: need a date, a payer and an amount")
        date, payer, amount = parts[:3]
        out.append((date, payer, read_plain(amount), parts[3].strip() if len(parts) > 3 else ""))
    return out


def balances(expenses):
    """Name → (paid, share, balance) in cents; a positive balance is owed to that person."""
    people = sorted({payer for _, payer, _, _ in expenses})
    paid = dict.fromkeys(people, 0)
    share = dict.fromkeys(people, 0)
    for _, payer, cents, _ in expenses:
        paid[payer] += cents
        for name, part in split(cents, people).items():
            share[name] += part
    return {name: (paid[name], share[name], paid[name] - share[name]) for name in people}

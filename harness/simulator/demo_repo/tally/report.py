"""What people read."""

from tally.money import format_cents


def as_text(rows):
    """``(name, paid, share, balance)`` rows in cents as aligned text."""
    lines = [f"{'name':<10}{'paid':>10}{'share':>10}{'balance':>10}"]
    for name, paid, share, balance in rows:
        lines.append(f"{name:<10}{format_cents(paid):>10}{format_cents(share):>10}{format_cents(balance):>10}")
    return "\n".join(lines) + "\n"

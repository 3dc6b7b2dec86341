"""Amounts are integers in cents."""


def format_cents(cents):
    """``123450`` → ``"1234.50"``; negative amounts keep their sign."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole}.{rest:02d}"


def read_plain(text):
    """Cents of a plain amount such as ``12`` or ``12.50``."""
    whole, _, rest = text.partition(".")
    return int(whole) * 100 + int(rest.ljust(2, "0") or 0)

"""``python3 -m tally FILE``."""

import sys

from tally import book, report


def main(argv):
    if len(argv) != 1:
        print("usage: python3 -m tally FILE", file=sys.stderr)
        return 2
    with open(argv[0], encoding="utf-8") as f:
        sums = book.balances(book.read(f))
    sys.stdout.write(report.as_text((name, *sums[name]) for name in sums))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

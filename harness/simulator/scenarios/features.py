"""Implements the features of the demo repository's SPEC.md, reading test results as it goes, until the whole suite
passes.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from harness.simulator.script import Heard, Scenario, Script, Turn, call, say

TESTS = ["python3", "-m", "unittest", "-q"]

PARSE_FIRST = '''

def parse_amount(text):
    """Cents of an amount such as ``1,234.50``."""
    try:
        return read_plain(text.replace(",", ""))
    except ValueError:
        raise ValueError(f"{text!r} is not an amount") from None
'''

PARSE_RIGHT = '''

_AMOUNT = re.compile(r"(\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.(\\d{1,2}))?")


def parse_amount(text):
    """Cents of an amount such as ``1,234.50``; a ValueError names any other text."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an amount")
    whole, rest = match.groups()
    return int(whole.replace(",", "")) * 100 + int((rest or "").ljust(2, "0"))
'''

READ_PLAIN_TAIL = '    return int(whole) * 100 + int(rest.ljust(2, "0") or 0)\n'

SETTLE = '''"""Settling up: who pays whom."""


def settle(balances):
    """Transfers ``(from, to, cents)`` to zero for everybody; the largest debtor pays the largest creditor first."""
    if sum(balances.values()) != 0:
        raise ValueError(f"balances add up to {sum(balances.values())} cents, not to zero")
    rest = dict(balances)
    transfers = []
    while any(rest.values()):
        debtor = min(rest, key=lambda name: (rest[name], name))
        creditor = min(rest, key=lambda name: (-rest[name], name))
        cents = min(-rest[debtor], rest[creditor])
        transfers.append((debtor, creditor, cents))
        rest[debtor] += cents
        rest[creditor] -= cents
    return transfers
'''

MARKDOWN = '''

def as_markdown(rows):
    """``(name, paid, share, balance)`` rows in cents as a Markdown table."""
    lines = ["| Name | Paid | Share | Balance |", "| --- | ---: | ---: | ---: |"]
    for name, *amounts in rows:
        cells = [name.replace("|", "\\\\|"), *map(format_cents, amounts)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\\n".join(lines) + "\\n"
'''

REPORT_TAIL = '    return "\\n".join(lines) + "\\n"\n'

SPLIT_OLD = "    share = cents // len(people)\n    return {name: share for name in people}\n"
SPLIT_NEW = (
    "    share, left = divmod(cents, len(people))\n    return {name: share + (1 if i < left else 0) for i, name in"
    " enumerate(people)}\n"
)

Part = Generator[Turn, Heard, Heard]


def green(back: Heard) -> bool:
    """The last results show a passing unittest run."""
    return (
        bool(back.results)
        and not any(r.is_error for r in back.results)
        and bool(re.search(r"^OK\b", back.text, re.MULTILINE))
    )


def failing(back: Heard) -> str:
    """The names of the failing tests, for the model's own words."""
    names = dict.fromkeys(re.findall(r"^(?:FAIL|ERROR): (\w+)", back.text, re.MULTILINE))
    return ", ".join(names) or "something"


def run_tests(why: str, *only: str) -> Turn:
    return say(why, call("exec", argv=[*TESTS, *only], why="see whether the tests pass"))


def look_around() -> Part:
    yield say(
        "I'll start with the specification and what is there.",
        call("read_file", path="SPEC.md"),
        call("read_file", path="tests/test_spec.py"),
        call("list_files", path="tally"),
    )
    yield say(
        "Three features: amounts with separators, settling up, a Markdown report. Now the modules they belong to.",
        call("read_file", path="tally/money.py"),
        call("read_file", path="tally/report.py"),
        call("read_file", path="tally/book.py"),
    )
    return (yield run_tests("The baseline before I change anything."))


def amounts() -> Part:
    yield say(
        "SPEC 1. `read_plain` already does the digits, so I reuse it after dropping the separators.",
        call(
            "edit_file",
            path="tally/money.py",
            old=READ_PLAIN_TAIL,
            new=READ_PLAIN_TAIL + PARSE_FIRST,
            why="add parse_amount",
        ),
    )
    back = yield run_tests("Does that satisfy its tests?", "tests.test_spec")
    if not green(back):
        yield say(
            f"Too lenient: {failing(back)} fails. Dropping every comma accepts `1,23.00`, and three decimals pass. A"
            " pattern is exact.",
            call(
                "edit_file",
                path="tally/money.py",
                old=PARSE_FIRST,
                new=PARSE_RIGHT,
                why="accept only well-formed amounts",
            ),
            call(
                "edit_file",
                path="tally/money.py",
                old='"""Amounts are integers in cents."""\n',
                new='"""Amounts are integers in cents."""\n\nimport re\n',
            ),
        )
        back = yield run_tests("Again.", "tests.test_spec")
    return back


def settling_and_report() -> Part:
    yield say(
        "SPEC 1 is done. SPEC 2 gets a module of its own; largest debtor to largest creditor until everybody is at"
        " zero.",
        call("write_file", path="tally/settle.py", content=SETTLE, why="add settle"),
    )
    yield say(
        "SPEC 3 belongs beside `as_text`.",
        call("edit_file", path="tally/report.py", old=REPORT_TAIL, new=REPORT_TAIL + MARKDOWN, why="add as_markdown"),
    )
    return (yield run_tests("All three are there. The whole suite now."))


def mend_split(back: Heard) -> Part:
    yield say(
        f"The features pass; {failing(back)} does not, and that is not mine. Let me see why.",
        call("read_file", path="tally/split.py"),
        call("read_file", path="tests/test_split.py"),
    )
    yield say(
        "`split` drops the cents that do not divide evenly, against its own docstring. The first people must carry"
        " them.",
        call("edit_file", path="tally/split.py", old=SPLIT_OLD, new=SPLIT_NEW, why="no cent may be lost"),
    )
    return (yield run_tests("Once more, everything."))


def play(goal: str) -> Script:
    yield from look_around()
    yield from amounts()
    back = yield from settling_and_report()
    if not green(back):
        back = yield from mend_split(back)
    if not green(back):
        yield say(
            f"I could not get the tests to pass: {failing(back)} still fails. A human should look at it before I go on."
        )
        return
    yield say(
        "Green, nothing skipped. The specification's own status, and a line for the changelog.",
        call("exec", argv=["python3", "tools/spec_status.py"]),
        call(
            "edit_file",
            path="CHANGELOG.md",
            old="## Unreleased\n",
            new=(
                "## Unreleased\n\n- Amounts may have thousands separators; `settle` says who pays whom; the report can"
                " be a Markdown table.\n"
            ),
        ),
    )
    yield say("I commit this as one change.", call("exec", argv=["git", "add", "-A"], why="stage the work"))
    yield say(
        "",
        call(
            "exec",
            argv=["git", "commit", "-q", "-m", "Read separators, settle up and report as Markdown"],
            why="record the work",
        ),
    )
    back = yield say(
        "All three features of SPEC.md are implemented, their tests pass, and the work is committed. I also repaired"
        " `split`, which lost cents."
    )
    for _ in range(2):
        back = yield run_tests("A check did not pass; I run the tests again to see what it saw.")
        back = yield say(
            "My run passes."
            if green(back)
            else f"I see it too: {failing(back)} fails, and I do not know how to repair it."
        )


SCENARIOS = [Scenario("features", re.compile(r"SPEC\.md", re.IGNORECASE), play)]

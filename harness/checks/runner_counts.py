"""How many tests a check ran, by the verdict line of its runner, and what follows from that. Pure.

An exit code of 0 says that nothing failed; that something ran is another matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.domain.text.formatting import counted

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PYTEST = re.compile(
    r"^(?:=+ )?((?:\d+ [a-z]+(?: [a-z]+)?(?:, )?)+|no tests ran) in [\d.]+ ?s(?: \([\d:]+\))?(?: =+)?$", re.MULTILINE
)
_PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected)\b")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s$", re.MULTILINE)
_UNITTEST_END = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)]*)\))?$", re.MULTILINE)
_RED = re.compile(r"^FAILED \((?:failures|errors|unexpected successes)=\d|^FAIL$", re.MULTILINE)
"""The last line of a runner of which a command shows no more than that."""
_JEST = re.compile(r"^Tests:\s+((?:\d+ \w+(?:, )?)+)$", re.MULTILINE)
_VITEST = re.compile(r"^\s+Tests\s+((?:\d+ \w+(?: \| )?)+)(?: \(\d+\))?$|^\s+Tests\s+no tests$", re.MULTILINE)
_WORDED = re.compile(r"(\d+) (passed|failed|skipped|todo)\b")
_MOCHA = re.compile(r"^\s+(\d+) (passing|failing|pending)\b", re.MULTILINE)
_CARGO = re.compile(
    r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; (\d+) filtered", re.MULTILINE
)
_GO_TEST = re.compile(r"^\s*--- (PASS|FAIL|SKIP): ", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^(ok|FAIL)\s+\S+\s+(?:\([a-z]+\)|[\d.]+s)( \[no tests to run\])?", re.MULTILINE)
_NODE = re.compile(r"^(?:#|ℹ) (pass|fail|skipped|todo|cancelled) (\d+)$", re.MULTILINE)
_RSPEC = re.compile(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?", re.MULTILINE)
_MAVEN = re.compile(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$", re.MULTILINE)
_TAP_PLAN = re.compile(r"^1\.\.\d+", re.MULTILINE)
_TAP = re.compile(r"^(not )?ok \d+\b(?:[^\n#]*#\s*(skip|todo)\b)?", re.MULTILINE | re.IGNORECASE)
_PROVE = re.compile(r"^Files=\d+, Tests=(\d+),", re.MULTILINE)
_MINITEST = re.compile(
    r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) skips)?$", re.MULTILINE
)
_PHPUNIT = re.compile(r"^OK \((\d+) tests?, \d+ assertions?\)$|^Tests: (\d+), Assertions: \d+(.*)\.$", re.MULTILINE)
_PHPUNIT_PART = re.compile(r"(Errors|Failures|Skipped|Incomplete): (\d+)")
_JASMINE = re.compile(r"^(\d+) specs?, (\d+) failures?(?:, (\d+) pending specs?)?$", re.MULTILINE)
_RUNS = re.compile(
    r"(?:^|[\s;&|(/])(?:pytest|py\.test|jest|vitest|mocha|rspec|bats|prove|phpunit|jasmine)(?:\s|$)"
    r"|-m\s+(?:pytest|unittest)\b"
    r"|\bgo\s+test\b|\bcargo\s+(?:test|nextest)\b"
)
_INVERTED = re.compile(r"^\s*!|\$\?")
"""A command that wants its runner to fail."""
_SILENT = re.compile(r"[|>]|\s-qq+\b|-q\s+-q\b|no:terminal|--co\b|--collect-only|--version|--help|--no-run|--fixtures")


@dataclass(frozen=True, slots=True)
class Counts:
    """``ran`` tests had an outcome, ``failed`` of them a bad one; ``excused`` are those that were skipped, ignored,
    filtered out or expected to fail, ``raised`` those of them whose runner takes that word from the code under test
    too.
    """

    ran: int
    excused: int = 0
    failed: int = 0
    raised: int = 0

    @property
    def all(self) -> int:
        """Those that had an outcome, and those that were excused from it."""
        return self.ran + self.excused

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.ran + other.ran,
            self.excused + other.excused,
            self.failed + other.failed,
            self.raised + other.raised,
        )


@dataclass(frozen=True, slots=True)
class CheckCount:
    """What a check that was run says. ``why`` it does not count although it exited with 0; empty otherwise."""

    passed: bool
    why: str = ""
    counts: Counts | None = None


def parse(output: str) -> Counts | None:
    """What the verdict lines of all known runners in this output add up to; None when there is none."""
    text = _ANSI.sub("", output.replace("\r\n", "\n"))
    found = [
        counts
        for reader in (_pytest, _unittest, _javascript, _mocha, _cargo, _go, _node, _rspec, _maven, _tap, _ruby_and_php)
        for counts in reader(text)
    ]
    return sum(found[1:], found[0]) if found else None


def judge(
    command: str, exit_code: int | None, output: str, first: Counts | None, *, excused: bool = True, red: bool = False
) -> CheckCount:
    """Whether a check that was run passes. ``first`` is what it counted before the work, or else in its first run, and
    ``red`` whether it failed then; ``excused`` whether a file that decides says that tests are skipped or expected to
    fail: else the code under test said so.

    It never passes on fewer tests, or on more excused ones, than at first, nor when a test runner ran none. Of tests
    that a run which failed did not even find, some may be excused.
    """
    counts = parse(output)
    if exit_code != 0:
        return CheckCount(False, "", counts)
    if counts is None:
        if _RED.search(text := _ANSI.sub("", output.replace("\r\n", "\n"))) and not inverted(command):
            last = text.strip().rpartition("\n")[2]
            return CheckCount(False, f"it exits with 0, and its output ends with {last[:80]!r}")
        if first is not None:
            return CheckCount(False, f"it ran {counted(first.ran, 'test')} at first, and now its output tells of none")
        if runs_tests(command) and not _SILENT.search(command):
            return CheckCount(False, "its output tells of no test that ran")
        return CheckCount(True)
    if counts.failed and not inverted(command):
        return CheckCount(
            False, f"it exits with 0, and its output tells of {counted(counts.failed, 'test')} that failed", counts
        )
    if counts.ran == 0:
        return CheckCount(False, "no test ran", counts)
    if first is not None and counts.ran < first.ran:
        return CheckCount(False, f"only {counted(counts.ran, 'test')} ran, where {first.ran} ran at first", counts)
    if first is not None and counts.excused > first.excused + (max(0, counts.all - first.all) if red else 0):
        more = (
            f"{counted(counts.excused, 'test')} skipped or expected to fail, where there were {first.excused} at first"
        )
        return CheckCount(False, more, counts)
    if counts.raised and not excused:
        return CheckCount(
            False, f"{counted(counts.raised, 'test')} skipped or expected to fail, and no test says so", counts
        )
    return CheckCount(True, "", counts)


def runs_tests(command: str) -> bool:
    """Whether a command runs a known test runner."""
    return _RUNS.search(command) is not None


def inverted(command: str) -> bool:
    """Whether a command wants its runner to fail."""
    return _INVERTED.search(command) is not None


def _pytest(text: str) -> list[Counts]:
    found: list[Counts] = []
    for line in _PYTEST.finditer(text):
        parts = {kind.rstrip("s"): int(number) for number, kind in _PYTEST_PART.findall(line[1])}
        failed = parts.get("failed", 0) + parts.get("error", 0)
        raised = parts.get("skipped", 0) + parts.get("xfailed", 0)
        ran = failed + parts.get("passed", 0) + parts.get("xpassed", 0)
        found.append(Counts(ran, raised + parts.get("deselected", 0), failed, raised))
    return found


def _unittest(text: str) -> list[Counts]:
    found: list[Counts] = []
    for line in _UNITTEST.finditer(text):
        end = _UNITTEST_END.search(text, line.end())
        about = dict(re.findall(r"([a-z ]+?)=(\d+)", end[1].replace(", ", ",") if end and end[1] else ""))
        excused = sum(int(about.get(kind, 0)) for kind in ("skipped", "expected failures"))
        failed = sum(int(about.get(kind, 0)) for kind in ("failures", "errors", "unexpected successes"))
        found.append(Counts(max(0, int(line[1]) - excused), excused, failed, excused))
    return found


def _javascript(text: str) -> list[Counts]:
    found: list[Counts] = []
    for line in (*_JEST.finditer(text), *_VITEST.finditer(text)):
        parts = {kind: int(number) for number, kind in _WORDED.findall(line[1] or "")}
        failed = parts.get("failed", 0)
        found.append(Counts(parts.get("passed", 0) + failed, parts.get("skipped", 0) + parts.get("todo", 0), failed))
    return found


def _mocha(text: str) -> list[Counts]:
    parts = [(kind, int(number)) for number, kind in _MOCHA.findall(text)]
    if not any(kind == "passing" for kind, _ in parts):
        return []
    excused = sum(number for kind, number in parts if kind == "pending")
    failed = sum(number for kind, number in parts if kind == "failing")
    return [Counts(sum(number for _, number in parts) - excused, excused, failed)]


def _cargo(text: str) -> list[Counts]:
    return [Counts(int(m[1]) + int(m[2]), int(m[3]) + int(m[4]), int(m[2])) for m in _CARGO.finditer(text)]


def _go(text: str) -> list[Counts]:
    outcomes = _GO_TEST.findall(text)
    if outcomes:
        excused = outcomes.count("SKIP")
        return [Counts(len(outcomes) - excused, excused, outcomes.count("FAIL"))]
    packages = _GO_PACKAGE.findall(text)
    failed = sum(1 for word, _ in packages if word == "FAIL")
    return [Counts(sum(1 for _, none in packages if not none), 0, failed)] if packages else []


def _node(text: str) -> list[Counts]:
    parts = dict(_NODE.findall(text))
    if "pass" not in parts:
        return []
    failed = int(parts.get("fail", 0))
    return [Counts(int(parts["pass"]) + failed, int(parts.get("skipped", 0)), failed)]


def _rspec(text: str) -> list[Counts]:
    return [Counts(int(m[1]) - int(m[3] or 0), int(m[3] or 0), int(m[2])) for m in _RSPEC.finditer(text)]


def _maven(text: str) -> list[Counts]:
    totals = [tuple(map(int, m.groups())) for m in _MAVEN.finditer(text)]
    if not totals:
        return []
    ran, failures, errors, skipped = totals[-1]
    return [Counts(ran - skipped, skipped, failures + errors)]


def _tap(text: str) -> list[Counts]:
    if _NODE.search(text) or not _TAP_PLAN.search(text):
        return [Counts(int(m[1])) for m in _PROVE.finditer(text)]
    lines = [(bool(wrong), word.lower()) for wrong, word in _TAP.findall(text)]
    excused = sum(1 for _, word in lines if word)
    return [Counts(len(lines) - excused, excused, sum(1 for wrong, word in lines if wrong and not word))]


def _ruby_and_php(text: str) -> list[Counts]:
    """Runners whose one line says how many there were, of which some failed and some were skipped."""
    found = [(int(m[1]), int(m[2]) + int(m[3]), int(m[4] or 0)) for m in _MINITEST.finditer(text)]
    found += [(int(m[1]), int(m[2]), int(m[3] or 0)) for m in _JASMINE.finditer(text)]
    for m in _PHPUNIT.finditer(text):
        parts = {kind: int(number) for kind, number in _PHPUNIT_PART.findall(m[3] or "")}
        failed = parts.get("Errors", 0) + parts.get("Failures", 0)
        found.append((int(m[1] or m[2]), failed, parts.get("Skipped", 0) + parts.get("Incomplete", 0)))
    return [Counts(ran - excused, excused, failed) for ran, failed, excused in found]

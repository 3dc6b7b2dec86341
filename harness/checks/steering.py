"""Where a change touches how tests are found, run, compared or ended: named to whoever reads the work, a judge or a
person. No verdict follows from it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from harness.checks.check_scripts import simple_commands
from harness.checks.protected_files import CI, CONFIGURATION, DATA, IN_PARTS, SETUP, TESTS
from harness.domain.path_patterns import fits
from harness.domain.steered import Steered
from harness.domain.text.patch_lines import Line, Section, lines, sections

MOST = 60
_MOST_OF_ONE = 8
_MOST_LINE = 2000
_LOADED = ("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "**/__mocks__/**")
_IGNORES = (".gitignore", ".eslintignore", ".prettierignore", ".dockerignore", ".gitattributes", ".ignore")
_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "ends the process",
        re.compile(
            r"\bos\._exit\(|\bsys\.exit\(|\braise\s+SystemExit\b|(?<![\w.])(?:exit|quit|_exit|abort)\s*\("
            r"|\bos\.(?:abort|kill)"
            r"\(|\bprocess\.(?:exit|abort|kill|reallyExit)\b|\bprocess\.exitCode\s*=|\bos\.Exit\("
            r"|\bprocess::(?:exit|abort)"
            r"\(|\bSystem\.exit\(|\bRuntime\.getRuntime\(\)\.halt\(|\bDeno\.exit\(|\bEnvironment\.Exit\(|(?<!\w)exit!"
            r"|\bos\.exec[lv]|\bsyscall\.(?:Exit|Kill)\("
        ),
    ),
    (
        "runs something as the process ends",
        re.compile(r"\batexit\.register\(|\bprocess\.on\(\s*['\"](?:exit|beforeExit)|\bat_exit\b|\baddShutdownHook\("),
    ),
    (
        "says how values compare",
        re.compile(
            r"\bdef\s+__(?:eq|ne|lt|le|gt|ge|contains|bool|instancecheck|subclasscheck)__\b|\b__(?:eq|ne|bool)__\s*="
            r"|\boperator\s*(?:==|!=|<=>)|\bfunc\s+\([^)]*\)\s+Equal\(|\bimpl(?:<[^>]*>)?\s+(?:Partial)?Eq\b"
            r"|\bboolean\s+equals\(|\boverride\s+(?:fun\s+equals|bool\s+Equals)\b|\bdef\s+(?:==|eql\?|===)"
            r"|\bSymbol\.toPrimitive\b|\bexpect\.extend\("
        ),
    ),
    (
        "changes what runs or compares tests",
        re.compile(
            r"\b(?:unittest|pytest|_pytest|TestCase|doctest|assert|expect|chai|jest|vitest|mocha|sinon|builtins"
            r"|__builtins__"
            r")(?:\.\w+)+\s*=(?!=)|\bsetattr\(\s*(?:unittest|pytest|_pytest|builtins|sys)\b"
            r"|\bsys\.modules\[[^\]]+\]\s*="
            r"|\bsys\.(?:settrace|setprofile|meta_path|path_hooks|excepthook|stdout|stderr)\b(?:\s*=(?!=)"
            r"|\.(?:insert|append)"
            r"|\()|\bimportlib\.abc\b|\brequire\.cache\b|\bModule\._(?:load|resolveFilename)\b"
            r"|\bglobal(?:This)?\.(?:it|test|describe|expect|assert)\s*=|\bpytest_(?:collection|runtest"
            r"|sessionfinish|plugins"
            r"|configure|unconfigure|exception|assertrepr)\w*\b|\bpytest11\b|\bfunc\s+TestMain\("
        ),
    ),
    (
        "replaces something for a test",
        re.compile(r"\bmonkeypatch\.\w+\(|\b(?:mock\.)?patch(?:\.object)?\(|\b(?:jest|vi)\.(?:mock|spyOn)\("),
    ),
    (
        "skips a test, or runs only some",
        re.compile(
            r"\bmark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip|exit)\(|\bunittest\.(?:skip"
            r"|expectedFailure)"
            r"|\bSkipTest\b|\bskipTest\(|\b(?:it|test|describe|context)\.(?:skip|only|todo|failing|fixme)\b"
            r"|(?<![\w.])(?:xit|xdescribe|xtest|fit|fdescribe)\(|\bt\.Skip(?:f|Now)?\(|#\[ignore\b|@(?:Disabled"
            r"|Ignore)\b"
            r"|\bcollect_ignore(?:_glob)?\b|\bnorecursedirs\b|\b__test__\s*=\s*False|\btestPathIgnorePatterns\b"
            r"|\bmarkTestSkipped\("
        ),
    ),
    (
        "asks whether it is tested",
        re.compile(
            r"\bPYTEST_\w+|['\"](?:pytest|_pytest|unittest|nose2?|jest|mocha|vitest)['\"]\s+(?:not\s+)?in\b"
            r"|\bsys\.modules\.get\(|\bJEST_WORKER_ID\b|\bVITEST\b|\bNODE_ENV\b.{0,12}['\"]test['\"]"
            r"|(?:environ|getenv|process\.env|ENV)(?:\.get)?\W{1,4}(?:CI|GITHUB_ACTIONS|TEST|TESTING)\b"
            r"|\binspect\.(?:stack|currentframe|getouterframes)\(|\bsys\._getframe\(|\btraceback\.(?:extract_stack"
            r"|walk_stack)\("
            r"|\btesting\.Testing\(|\bcfg!\(test\)|\bcfg\(not\(test\)\)|\bsys\.argv\[0\]|\bgetppid\(|/proc/self/cmdline"
        ),
    ),
    (
        "tells a checker to look away",
        re.compile(
            r"#\s*(?:type:\s*ignore|noqa|nosec|pyright:|pylint:\s*disable|pragma:\s*no\s*cover|fmt:\s*off|mypy:)"
            r"|\beslint-disable|@ts-(?:ignore|nocheck|expect-error)\b|//\s*nolint|\bno_type_check\b|#!?\[allow\("
            r"|\brubocop:disable\b|#\s*shellcheck\s+disable|\bstylelint-disable|@SuppressWarnings\b|\bistanbul ignore\b"
        ),
    ),
    (
        "catches what a failing test raises",
        re.compile(
            r"\bexcept\s*(?:\(?[^:]*\b(?:AssertionError|BaseException)\b[^:]*)?:|\bcatch\s*\(\s*AssertionError\b"
        ),
    ),
    ("hides files from git", re.compile(r"\b--?(?:assume-unchanged|skip-worktree)\b")),
)
_ANY = re.compile("|".join(f"(?:{pattern.pattern})" for _, pattern in _WORDS))
_STEERING = re.compile(r"test|jest|vitest|mocha|lint|mypy|ruff|check|cover|script|tool\.|ignore|exclude", re.IGNORECASE)
_ASSERTS = re.compile(r"\bassert\w*\b|\bexpect\s*\(|\bshould\b|\brequire\.\w+\(|\bt\.(?:Error|Fatal)f?\(")
_DEFINES = re.compile(r"^\s*(?:(?:async\s+)?def\s+test|func\s+Test|(?:it|test|describe)\s*\(|#\[test\]|@Test\b)")
_TEXT = (".md", ".rst", ".txt", ".adoc")


def places(patch: str, commands: Collection[str] = (), left_out: Collection[str] = ()) -> list[Steered]:
    """The places, by file and line, of a comparison with the start. ``commands`` are the checks, whose files are
    looked for; ``left_out`` are files that are none of the work.
    """
    named = _named(commands)
    found = [
        one
        for section in sections(patch)
        if section.path not in left_out
        for one in [*_of_file(section, named), *_of_lines(section)][:_MOST_OF_ONE]
    ]
    return found[:MOST]


def _of_file(section: Section, named: Collection[str]) -> Iterator[Steered]:
    path = section.path
    name = path.rpartition("/")[2]
    head = section.text.partition("\n@@")[0]
    new = "\nnew file" in head
    gone = "\ndeleted file" in head
    how = "new" if new else "changed"
    how = "gone" if gone else how
    if section.before != path and not new:
        how = f"moved from {section.before}"
    line = next((one.number for one in lines(section.text)), 0)
    if fits(path, _LOADED):
        yield Steered(path, line, f"loaded before tests run, {how}")
    elif fits(path, (*CONFIGURATION, *SETUP)):
        if name not in IN_PARTS or (line := _steers(section.text)):
            yield Steered(path, line, f"says how to check or to run tests, {how}")
    elif fits(path, CI):
        yield Steered(path, line, f"what runs in CI, {how}")
    elif name in _IGNORES:
        yield Steered(path, line, f"says what is left out, {how}")
    elif fits(path, TESTS):
        yield Steered(path, line, f"a test, {how}{_lost(section.text)}")
    elif fits(path, DATA):
        yield Steered(path, line, f"what tests compare with, {how}")
    elif name.endswith(".pyi"):
        yield Steered(path, line, f"types that stand for a module's, {how}")
    if not new and (gone or section.before != path) and (one := _is_named(section.before, named)):
        yield Steered(path, line, f"a check names {one}, and this is {how}")


def _steers(text: str) -> int:
    """The first changed line of a file of many uses that says how to check; 0 without."""
    return next((one.number for one in lines(text) if _STEERING.search(one.text[:_MOST_LINE])), 0)


def _lost(text: str) -> str:
    """What a test lost, in words."""
    changed = list(lines(text))
    tests = _fewer(changed, _DEFINES)
    asserts = _fewer(changed, _ASSERTS)
    told = [f"{count} {what} fewer" for count, what in ((tests, "tests"), (asserts, "assertions")) if count > 0]
    return f" ({', '.join(told)})" if told else ""


def _fewer(changed: list[Line], what: re.Pattern[str]) -> int:
    return sum((-1 if one.added else 1) for one in changed if what.search(one.text[:_MOST_LINE]))


def _of_lines(section: Section) -> Iterator[Steered]:
    if section.path.endswith(_TEXT):
        return
    for one in lines(section.text):
        text = one.text[:_MOST_LINE]
        if one.added and _ANY.search(text):
            why = next((why for why, pattern in _WORDS if pattern.search(text)), "")
            yield Steered(section.path, one.number, why)


def _named(commands: Collection[str]) -> set[str]:
    """Words of these commands that may be paths."""
    found = {word for command in commands for words in simple_commands(command) for word in words[1:]}
    return {word.removeprefix("./").rstrip("/") for word in found if re.fullmatch(r"[\w./@-]*\w[\w./@-]*", word)}


def _is_named(path: str, named: Collection[str]) -> str:
    parts = path.split("/")
    return next((at for end in range(1, len(parts) + 1) if (at := "/".join(parts[:end])) in named), "")

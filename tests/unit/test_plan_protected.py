"""Which files decide whether work is done, and which new ones would decide it in their stead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks import check_settings
from harness.checks.check_scripts import Named, named
from harness.checks.protected_files import New, Rules, chosen, folders_around, shadows
from harness.domain import path_patterns

BASE = (
    "README.md",
    "Makefile",
    "pyproject.toml",
    "src/app.py",
    "src/app_test.go",
    "scripts/check.sh",
    "tools/status.py",
    "tests/__init__.py",
    "tests/test_app.py",
    "tests/helpers.py",
    "tests/data/one.json",
    "web/app.ts",
    "web/app.test.ts",
    ".github/workflows/ci.yml",
)


def test_tests_configuration_and_ci_are_protected_and_the_work_is_not() -> None:
    found = chosen(BASE, Rules())
    assert found == {
        "Makefile",
        "pyproject.toml",
        "src/app_test.go",
        "tests/__init__.py",
        "tests/test_app.py",
        "tests/helpers.py",
        "tests/data/one.json",
        "web/app.test.ts",
        ".github/workflows/ci.yml",
    }


def test_scripts_that_a_check_runs_are_protected() -> None:
    found = chosen(BASE, Rules(("CI=1 ./scripts/check.sh && python3 tools/status.py --all",)))
    assert {"scripts/check.sh", "tools/status.py"} <= found


@pytest.mark.parametrize(
    "command",
    ["python src/app.py --version", "grep -q done README.md", "python -m src.app", "python -c 'x' src/app.py"],
)
def test_what_a_check_merely_uses_is_not_protected(command: str) -> None:
    assert named([command], lambda _: "").runs & set(BASE) == set()


MAKEFILE = """
PY ?= python3
-include .env local.mk

all: build

build:
	./scripts/build_test_data.sh

test: lint
	@$(PY) ci/run.py && \\
	cd web && sh run.sh --fast

lint: ; node hack/lint.js
"""
SCRIPTS: dict[str, tuple[str, dict[str, str], set[str], set[str]]] = {
    "a target": (
        "make -s test",
        {"Makefile": MAKEFILE, "web/run.sh": "#!/bin/sh\n. ./lib.sh\n'\n./more_tests.sh"},
        {"ci/run.py", "web/run.sh", "hack/lint.js", "web/more_tests.sh"},
        {".env", "local.mk", "web/lib.sh"},
    ),
    "the first target": ("make", {"Makefile": MAKEFILE}, {"scripts/build_test_data.sh"}, {".env", "local.mk"}),
    "a folder's target": ("make -C web -j 4 t", {"web/makefile": "t:\n\t./test.sh\n"}, {"web/test.sh"}, set()),
    "a makefile of another name": ("make -f all.inc t", {"all.inc": "t:\n\t./t.sh\n"}, {"t.sh"}, {"all.inc"}),
    "a script of a package": (
        "CI=1 npm run -s test",
        {"package.json": '{"scripts": {"pretest": "node tools/pre.js", "test": "yarn unit", "unit": "./unit.sh"}}'},
        {"tools/pre.js", "unit.sh"},
        set(),
    ),
    "a time limit": ("timeout -k 5 60s env A=1 nice ./check && true", {}, {"check"}, set()),
    "a shell": ("cd ci; bash -euc './a.sh; source b.env'", {}, {"ci/a.sh"}, {"ci/b.env"}),
    "another than it wants": ("! python3 scripts/check.py", {}, {"scripts/check.py"}, set()),
    "itself": ("./a.sh", {"a.sh": "./a.sh; make", "Makefile": "a: a\n\tmake a\n"}, {"a.sh"}, set()),
    "a program of its own": ("python3 app.py --check && ./bin/app", {}, set(), set()),
    "what is outside": ("../check.sh; /x/check.sh; . /etc/profile", {}, set(), set()),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_check_comes_to_run_and_read_is_known(name: str) -> None:
    command, files, runs, reads = SCRIPTS[name]
    found = named([command], lambda path: files.get(path, ""))
    assert (found.runs, found.reads) == (runs, reads)


def test_what_a_check_reads_in_is_protected_and_new_it_shadows() -> None:
    run = Named(reads={"env.sh", ".env"})
    found = chosen({*BASE, "env.sh"}, Rules(), run)
    assert "env.sh" in found
    assert shadows(BASE, found, [New(".env")], Rules(), run) == [".env"]


def test_the_user_says_what_is_protected_and_what_is_free() -> None:
    found = chosen(BASE, Rules(protect=("README.md",), free=("tests/data",)))
    assert "README.md" in found
    assert "tests/data/one.json" not in found
    assert "tests/test_app.py" in found


SHADOWS = (
    New("conftest.py"),
    New("tests/conftest.py"),
    New("tests/data/conftest.py"),
    New("sitecustomize.py"),
    New("pytest.py"),
    New("unittest", folder=True),
    New("tests/json.py"),
    New("tests/helpers", folder=True),
    New("tests/helpers.cpython-311-x86_64-linux-gnu.so"),
    New("tests/data/__init__.py", text="import os"),
    New("pytest.ini"),
    New("tox.ini"),
    New("GNUmakefile"),
    New("jest.config.js"),
    New("web/__mocks__", folder=True),
    New("web/package.json"),
    New("src/main_test.go", text="func TestMain(m *testing.M) {}"),
    New("web.py"),
    New("tests/data.py"),
    New("mine.egg-info", folder=True, text="[pytest11]\nmine = mine\n"),
)


@pytest.mark.parametrize("new", SHADOWS, ids=lambda new: new.path)
def test_a_new_file_that_shadows_is_named(new: New) -> None:
    assert shadows(BASE, chosen(BASE, Rules()), [new], Rules()) == [new.path]


@pytest.mark.parametrize(
    "new",
    [
        New("tests/test_more.py"),
        New("tests/data/two.json"),
        New("src/parser.py"),
        New("src/json.py.txt"),
        New("tests/more", folder=True),
        New("docs", folder=True),
        New("web/b.test.ts"),
        New("src/other_test.go", text="func TestA(t *testing.T) {}"),
        New("lib/conftest.py"),
        New("mine.egg-info", folder=True, text="[console_scripts]\nmine = mine:main\n"),
    ],
    ids=lambda new: new.path,
)
def test_new_tests_and_work_are_free(new: New) -> None:
    assert shadows(BASE, chosen(BASE, Rules()), [new], Rules()) == []


def test_a_first_makefile_shadows_nothing() -> None:
    base = ("tests/test_a.py",)
    assert shadows(base, chosen(base, Rules()), [New("Makefile")], Rules()) == []


def test_what_is_free_never_shadows() -> None:
    assert shadows(BASE, chosen(BASE, Rules()), [New("conftest.py")], Rules(free=("conftest.py",))) == []


PATHS = st.lists(
    st.sampled_from(["tests", "src", "a", "test_x.py", "conftest.py", "b.md"]), min_size=1, max_size=4
).map("/".join)


@given(st.sets(PATHS, max_size=8))
def test_what_is_protected_is_of_the_commit(base: set[str]) -> None:
    assert chosen(base, Rules()) <= base
    assert chosen(base, Rules(free=("**",))) == frozenset()
    assert chosen(base, Rules(protect=("**",))) == base


@given(st.sets(PATHS, max_size=8))
def test_every_protected_file_lies_in_a_folder_that_is_looked_at(base: set[str]) -> None:
    around = folders_around(base)
    assert "" in around
    assert all(path.rpartition("/")[0] in around for path in base)


@given(st.text(max_size=80))
def test_any_command_can_be_read(command: str) -> None:
    files = {"Makefile": command, "check.sh": command, "package.json": command}
    found = named([command, "make", "./check.sh", "npm test"], lambda path: files.get(path, ""))
    assert all(name and not name.startswith("/") for name in found.runs | found.reads)


@pytest.mark.parametrize(
    ("pattern", "path", "fit"),
    [
        ("*.md", "a/b.md", True),
        ("a/*.md", "a/b/c.md", False),
        ("a/**", "a/b/c.md", True),
        ("**/t/**", "x/t/y", True),
        ("a/", "a/b", True),
        ("a", "x/a/b", True),
        ("a?c", "abc", True),
        ("a.c", "abc", False),
    ],
)
def test_patterns(pattern: str, path: str, fit: bool) -> None:
    assert path_patterns.fits(path, [pattern]) is fit


def test_a_new_dependency_is_no_weaker_test() -> None:
    old = b'[project]\nname = "a"\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    more = old.replace(b'name = "a"', b'name = "a"\ndependencies = ["x"]')
    weaker = old.replace(b'"-q"', b'"-q --ignore=tests"')
    assert check_settings.of("pyproject.toml", old) == check_settings.of("pyproject.toml", more)
    assert check_settings.of("pyproject.toml", old) != check_settings.of("pyproject.toml", weaker)
    assert check_settings.of("pyproject.toml", b"[project]\nname = 'a'\n") == b""
    assert check_settings.of("package.json", b'{"dependencies": {"a": "1"}}') == b""
    assert check_settings.of("package.json", b'{"scripts": {"test": "true"}}')
    assert check_settings.of("setup.cfg", b"[metadata]\nname = a\n") == b""
    assert check_settings.of("setup.cfg", b"[tool:pytest]\naddopts = -k no\n")
    assert check_settings.of("Cargo.toml", b'[package]\nname = "a"\n[dependencies]\nx = "1"\n') == b""
    assert check_settings.of("Cargo.toml", b"[package]\nautotests = false\n")


@given(st.binary(max_size=200), st.sampled_from(["pyproject.toml", "package.json", "setup.cfg", "Cargo.toml"]))
def test_any_content_can_be_read_or_is_said_to_be_none(data: bytes, name: str) -> None:
    found = check_settings.of(name, data)
    assert found is None or isinstance(found, bytes)


def test_what_a_check_may_write_to_is_asked_once() -> None:
    from harness.events import types as t
    from harness.projections.state import protected_files

    kept = protected_files.Ratchet()
    for number, how in enumerate(("changed", "touched")):
        file = t.ViolatedFile("tests/data.json", how, protected_files.TOUCHED if how == "touched" else "sha")
        kept.violated(number, t.RatchetViolation(violation_id=f"v{number}", call_id="c1.0", files=[file]))
        assert not kept.clear
        kept.answered(t.RatchetAnswered(violations=[f"v{number}"], answer=protected_files.ALLOW))
        kept.restored(number, t.RatchetRestored(violation_id=f"v{number}", restored=1, allowed=True))
        assert kept.clear
    assert kept.accepted == {"tests/data.json": "sha"}

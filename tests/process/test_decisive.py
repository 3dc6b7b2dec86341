"""What decides a check beside its tests: programs found first, files that a runner loads, tests of other names."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checks.protected_files import Rules
from harness.workspace.protected import check_inputs, restore
from harness.workspace.tree import worktrees
from tests.fleetlib import git, make_repository

TEST = "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(4, 4)\n"
SUITE = "#!/bin/sh\nexec grep -q done app.py\n"
NODE = {"package.json": '{"scripts": {"test": "node --test"}}'}
SEEN = "node_modules/.bin/{}:shadows"
VITE = "export default defineConfig({{ plugins: [{}], test: {{ {} }} }})\n"
BESIDE = '#!/bin/bash\nHERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$HERE/lib.sh"\nrun\n'
STEERS = "PYTEST_ADDOPTS=-k double\n"
JUST = "set dotenv-load\n\ntest:\n    pytest\n"
JEST = '{"jest": {"setupFilesAfterEnv": ["./hooks.js"]}}'
Change = Callable[[Path], object]


def put(path: str, text: str = "#!/bin/sh\nexit 0\n") -> Change:
    """Write this file, which can be run."""

    def change(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)

    return change


def environment(root: Path) -> None:
    """An environment as a tool makes one, without its packages."""
    put(".venv/bin/activate", "PATH=$PWD/.venv/bin:$PATH\n")(root)
    put(".venv/bin/python3")(root)
    (root / ".venv/pyvenv.cfg").touch()


WAYS: dict[str, tuple[dict[str, str], str, Change, str]] = {
    "a program in the folder": ({}, "PATH=.:$PATH grep -q done app.py", put("grep"), "grep:shadows"),
    "a program in a folder of programs": (
        {},
        'export PATH="$PWD/bin:$PATH" && make -s test',
        put("bin/make"),
        "bin/make:shadows",
    ),
    "a program by env": ({}, "env PATH=bin:/usr/bin grep -q done app.py", put("bin/grep"), "bin/grep:shadows"),
    "a program by a Makefile": (
        {"Makefile": "export PATH := $(CURDIR)/bin:$(PATH)\ntest:\n\tgrep -q done app.py\n"},
        "make test",
        put("bin/grep"),
        "bin/grep:shadows",
    ),
    "a program beside those of packages": (NODE, "npm test", put("node_modules/.bin/node"), SEEN.format("node")),
    "a shell beside those of packages": (NODE, "npm run test", put("node_modules/.bin/sh"), SEEN.format("sh")),
    "a shell in an environment": (
        {},
        ". .venv/bin/activate && grep -q done app.py",
        lambda root: (environment(root), put(".venv/bin/grep")(root)),
        ".venv/bin/grep:shadows",
    ),
    "an environment that is none": (
        {},
        ". .venv/bin/activate && grep -q done app.py",
        put(".venv/bin/activate", "grep() { true; }\n"),
        ".venv/bin/activate:shadows",
    ),
    "a file of a target's name": ({"Makefile": "test:\n\tgrep done app.py\n"}, "make", put("test"), "test:shadows"),
    "a folder of a target's name": (
        {"Makefile": "verify:\n\tgrep done app.py\n"},
        "make verify",
        lambda root: (root / "verify").mkdir(),
        "verify:shadows",
    ),
    "a file of the name of what a target needs": (
        {"Makefile": "all: lint\n\ttrue\n\nlint:\n\tgrep done app.py\n"},
        "make all",
        put("lint"),
        "lint:shadows",
    ),
    "a file that a pattern includes": (
        {"Makefile": "include $(wildcard mk/*.inc)\ntest:\n\tgrep done app.py\n", "mk/a.inc": ""},
        "make test",
        put("mk/z.inc", "SHELL = /bin/true\n"),
        "mk/z.inc:shadows",
    ),
    "a script behind just": ({"justfile": "test:\n    ./suite.sh\n"}, "just test", put("suite.sh"), "suite.sh:changed"),
    "a script behind what a recipe of just needs": (
        {"justfile": "test: look\n    true\n\n@look:\n    sh suite.sh\n"},
        "just test",
        put("suite.sh"),
        "suite.sh:changed",
    ),
    "a script behind tox": (
        {"tox.ini": "[testenv]\ncommands = sh ./suite.sh\n"},
        "tox -e py",
        put("suite.sh"),
        "suite.sh:changed",
    ),
    "a script behind nox": (
        {"noxfile.py": "def test(session):\n    session.run('sh', 'suite.sh')\n"},
        "nox",
        put("suite.sh"),
        "suite.sh:changed",
    ),
    "a script behind task": (
        {"Taskfile.yml": "tasks:\n  test:\n    cmds:\n      - ./suite.sh\n"},
        "task test",
        put("suite.sh"),
        "suite.sh:changed",
    ),
    "a script behind rake": (
        {"Rakefile": "task :test do\n  sh './suite.sh'\nend\n"},
        "rake test",
        put("suite.sh"),
        "suite.sh:changed",
    ),
    "a test that the check names": (
        {"proof.py": TEST},
        "python3 -m unittest proof",
        put("proof.py", ""),
        "proof.py:changed",
    ),
    "a test of another name": (
        {"checks/sums.py": TEST},
        "python3 -m pytest checks/sums.py",
        put("checks/sums.py", ""),
        "checks/sums.py:changed",
    ),
    "a test that is looked for": (
        {"checks/sums.py": TEST},
        "python3 -m unittest discover -s checks -p '*.py'",
        put("checks/sums.py", ""),
        "checks/sums.py:changed",
    ),
    "a test of a name that the configuration gives": (
        {"pytest.ini": "[pytest]\npython_files = check_*.py\n", "suite/check_sums.py": TEST},
        "pytest",
        put("suite/check_sums.py", ""),
        "suite/check_sums.py:changed",
    ),
    "a plugin of the configuration": (
        {"pytest.ini": "[pytest]\naddopts = -p plug\n", "plug.py": "\n"},
        "pytest",
        put("plug.py"),
        "plug.py:changed",
    ),
    "a plugin of the command": ({"plug.py": "\n"}, "PYTHONPATH=. pytest -p plug", put("plug.py"), "plug.py:changed"),
    "a plugin of a conftest": (
        {"conftest.py": 'pytest_plugins = ["lib.plug"]\n', "lib/plug.py": "\n"},
        "pytest",
        put("lib/plug.py"),
        "lib/plug.py:changed",
    ),
    "what jest sets up": ({"package.json": JEST, "hooks.js": "\n"}, "npx jest", put("hooks.js"), "hooks.js:changed"),
    "what vitest sets up": (
        {"vitest.config.ts": "export default { test: { setupFiles: ['./lib/extra'] } }\n", "lib/extra.ts": "\n"},
        "vitest run",
        put("lib/extra.ts"),
        "lib/extra.ts:changed",
    ),
    "what mocha requires": (
        {".mocharc.json": '{"require": ["./hook.js"]}', "hook.js": "\n"},
        "mocha",
        put("hook.js"),
        "hook.js:changed",
    ),
    "what node requires": ({"hook.js": "\n"}, "node -r ./hook.js --test", put("hook.js"), "hook.js:changed"),
    "what rspec requires": (
        {".rspec": "--require ./hook\n", "hook.rb": "\n"},
        "rspec",
        put("hook.rb"),
        "hook.rb:changed",
    ),
    "a file that says which tests run": (
        {"suite.txt": "tests\n"},
        "pytest @suite.txt",
        put("suite.txt", "tests/test_app.py::test_one\n"),
        "suite.txt:changed",
    ),
    "a list that is given to a runner": (
        {"suite.txt": "tests\n"},
        "cd . && python3 -m pytest -q $(cat suite.txt)",
        put("suite.txt"),
        "suite.txt:changed",
    ),
    "a list on its way to a runner": (
        {"suite.txt": "tests\n"},
        "cat suite.txt | xargs python3 -m pytest",
        put("suite.txt"),
        "suite.txt:changed",
    ),
    "a plugin with an entry point beside the sources": (
        {"src/sums.py": "\n"},
        "PYTHONPATH=src python3 -m pytest",
        put("src/evil.dist-info/entry_points.txt", "[pytest11]\nevil = evil\n"),
        "src/evil.dist-info:shadows",
    ),
    "a package that tests compare by": ({}, "pytest", put("numpy/__init__.py", "testing = None\n"), "numpy:shadows"),
    "how much is to be covered": ({".nycrc": "{}\n"}, "nyc mocha", put(".nycrc"), ".nycrc:changed"),
    "what a script reads in from its own folder": (
        {"ci/check.sh": BESIDE, "ci/lib.sh": "run() { pytest; }\n"},
        "bash ci/check.sh",
        put("ci/lib.sh", "run() { true; }\n"),
        "ci/lib.sh:changed",
    ),
    "what a script reads in from beside it": (
        {"check.sh": '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\nrun\n', "lib.sh": "run() { pytest; }\n"},
        "./check.sh",
        put("lib.sh", "run() { true; }\n"),
        "lib.sh:changed",
    ),
    "what a script runs in its own folder": (
        {"ci/check.sh": 'cd "$(dirname -- "$0")"\n./go.sh\n', "ci/go.sh": "pytest\n"},
        "sh ci/check.sh",
        put("ci/go.sh"),
        "ci/go.sh:changed",
    ),
    "what a script runs from the top": (
        {"ci/check.sh": "TOP=$(git rev-parse --show-toplevel)\n${TOP}/etc/go.sh\n", "etc/go.sh": "pytest\n"},
        "sh ci/check.sh",
        put("etc/go.sh"),
        "etc/go.sh:changed",
    ),
    "variables that just sets": ({"justfile": JUST}, "just test", put(".env", STEERS), ".env:shadows"),
    "variables that task sets": (
        {"Taskfile.yml": "dotenv: ['.env']\ntasks:\n  test:\n    cmds:\n      - pytest\n"},
        "task test",
        put(".env", STEERS),
        ".env:shadows",
    ),
    "variables that pipenv sets": ({}, "pipenv run pytest", put(".env", STEERS), ".env:shadows"),
    "variables that a command names": (
        {"conf/ci.env": "\n"},
        "uv run --env-file conf/ci.env pytest",
        put("conf/ci.env", STEERS),
        "conf/ci.env:changed",
    ),
    "what vitest leaves out": (
        {"vite.config.ts": VITE.format("", "include: ['test/**']")},
        "vitest run",
        put("vite.config.ts", VITE.format("", "exclude: ['test/sums.test.ts']")),
        "vite.config.ts:changed",
    ),
    "what deno leaves out": (
        {"deno.json": '{"imports": {}}'},
        "deno test",
        put("deno.json", '{"imports": {}, "test": {"exclude": ["sums_test.ts"]}}'),
        "deno.json:changed",
    ),
    "what composer runs": (
        {"composer.json": '{"scripts": {"test": "phpunit"}}'},
        "composer test",
        put("composer.json", '{"scripts": {"test": "true"}}'),
        "composer.json:changed",
    ),
    "a configuration that pytest is given": (
        {"conf/unit.ini": "[pytest]\n"},
        "pytest -c conf/unit.ini",
        put("conf/unit.ini"),
        "conf/unit.ini:changed",
    ),
    "a configuration that coverage is given": (
        {"conf/cov.cfg": "[run]\n"},
        "pytest --cov --cov-config=conf/cov.cfg",
        put("conf/cov.cfg"),
        "conf/cov.cfg:changed",
    ),
    "a configuration that a linter is given": (
        {"conf/types.ini": "[mypy]\n"},
        "python3 -m mypy --config-file conf/types.ini app.py",
        put("conf/types.ini"),
        "conf/types.ini:changed",
    ),
    "what was approved": (
        {"approved/sum.txt": "4", "tests/test_a.py": "open('approved/sum.txt')\n"},
        "pytest",
        put("approved/sum.txt"),
        "approved/sum.txt:changed",
    ),
}
"""Ways to have a check pass without its tests' being touched: (files, check, what is done, what is seen)."""
WAYS |= {
    "settings of a checker, in a folder": (
        {"src/a.py": "import os\n"},
        "ruff check .",
        put("src/ruff.toml", 'exclude = ["*"]\n'),
        "src/ruff.toml:shadows",
    ),
    "settings of a checker where there are no tests": (
        {"tests/test_app.py": "", "lib/a.js": "x\n"},
        "npx eslint lib",
        put("lib/.eslintrc.json", "{}\n"),
        "lib/.eslintrc.json:shadows",
    ),
    "what a checker leaves out, behind a target": (
        {"Makefile": "lint:\n\tpython3 -m flake8 src\n", "src/a.py": "\n"},
        "make lint",
        put("src/.flake8", "[flake8]\nexclude = *\n"),
        "src/.flake8:shadows",
    ),
}
HONEST: dict[str, tuple[dict[str, str], str, Change]] = {
    "an environment": ({}, ". .venv/bin/activate && python3 -m unittest", environment),
    "packages": (NODE, "npm test", put("node_modules/.bin/python3")),
    "settings of a checker that no check runs": ({"src/a.py": "\n"}, "mypy src", put("src/ruff.toml", "\n")),
    "a package's settings that say nothing of a checker": (
        {"src/a.py": "\n"},
        "ruff check .",
        put("src/pyproject.toml", '[project]\nname = "a"\n'),
    ),
    "an environment in front": ({}, "PATH=.venv/bin:$PATH pytest", environment),
    "a program of its own": ({}, "PATH=bin:$PATH sums --self-test", put("bin/sums-of-this-repository")),
    "what a target makes": ({"Makefile": "app:\n\tcc -o app app.c\n"}, "make app", put("app")),
    "a file of the name of a phony target": (
        {"Makefile": ".PHONY: test\ntest:\n\tgrep done app.py\n"},
        "make test",
        lambda root: (root / "test").mkdir(),
    ),
    "a script that deploys, behind task": (
        {"Taskfile.yml": "tasks:\n  deploy:\n    cmds:\n      - sh deploy.sh\n", "deploy.sh": "\n"},
        "task test",
        put("deploy.sh"),
    ),
    "a module with tests beside its work": (
        {"sums.py": "def add(a, b):\n    return a\n\n\ndef test_add():\n    assert add(2, 2) == 4\n"},
        "pytest sums.py",
        put("sums.py"),
    ),
    "work that measures": (
        {"pyproject.toml": "[tool.coverage.run]\nsource = ['app.py']\n[tool.pytest.ini_options]\naddopts = '-q'\n"},
        "pytest",
        put("app.py"),
    ),
    "what is installed first": (
        {"tox.ini": "[testenv]\ndeps = -r requirements.txt\n", "requirements.txt": "a\n"},
        "pip install -r requirements.txt && mkdir -p app && tox",
        put("requirements.txt", "a\nb\n"),
    ),
    "what is installed first, by its list": (
        {"requirements.in": "a\n"},
        "pip install $(cat requirements.in) && pytest",
        put("requirements.in", "a\nb\n"),
    ),
    "a version that is looked at": ({"VERSION": "1\n"}, 'pytest && test "$(cat VERSION)" = 2', put("VERSION", "2\n")),
    "a package beside the sources": (
        {"src/sums.py": "\n"},
        "PYTHONPATH=src pytest",
        put("src/sums.egg-info/entry_points.txt", "[console_scripts]\nsums = sums:main\n"),
    ),
    "variables of the work": ({"justfile": JUST}, "just test", put(".env", "DATABASE_URL=postgres://\n")),
    "a plugin for vite": (
        {"vite.config.ts": VITE.format("", "globals: true")},
        "vitest run",
        put("vite.config.ts", VITE.format("vue()", "globals: true")),
    ),
    "what is imported by deno": (
        {"deno.json": '{"imports": {}, "tasks": {"test": "deno test"}}'},
        "deno task test",
        put("deno.json", '{"imports": {"a": "npm:a"}, "tasks": {"test": "deno test"}}'),
    ),
    "what is required by composer": (
        {"composer.json": '{"scripts": {"test": "phpunit"}}'},
        "composer test",
        put("composer.json", '{"require": {"a/b": "1"}, "scripts": {"test": "phpunit"}}'),
    ),
    "what a script that checks is about": (
        {"ci/check.sh": 'cd "$(dirname "$0")/.."\nROOT=$PWD\npytest "$ROOT/tests"\n'},
        "sh ci/check.sh",
        put("app.py"),
    ),
    "a folder that is made first": ({}, "mkdir -p app && pytest", put("app.py")),
    "every module is looked through for tests": (
        {"pytest.ini": "[pytest]\npython_files = *.py\n"},
        "pytest",
        put("app.py"),
    ),
}


def seen(tmp_path: Path, files: dict[str, str], check: str, change: Change) -> list[str]:
    repo = make_repository(tmp_path / "repo", {"app.py": "\n", "suite.sh": SUITE, "tests/test_app.py": TEST} | files)
    private = tmp_path / "s1/git/private"
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", private)
    change(tree.root)
    return [f"{one.path}:{one.how}" for one in restore.examine(tree, Rules((check,)), {}).differences]


@pytest.mark.parametrize("way", WAYS)
def test_what_would_decide_instead_is_seen(way: str, tmp_path: Path) -> None:
    files, check, change, expected = WAYS[way]
    assert seen(tmp_path, files, check, change) == [expected]


@pytest.mark.parametrize("work", HONEST)
def test_work_beside_it_is_no_difference(work: str, tmp_path: Path) -> None:
    files, check, change = HONEST[work]
    assert seen(tmp_path, files, check, change) == []


def test_a_program_of_a_name_that_no_system_has_stands_before_none(tmp_path: Path) -> None:
    name = f"none-{os.getpid()}"
    assert seen(tmp_path, {}, f"PATH=bin:$PATH {name}", put(f"bin/{name}")) == []


def test_of_a_large_file_only_the_beginning_is_read(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo", {"tests/golden.txt": "x" * (16 << 20)})
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", tmp_path / "s1/git/private")
    tracemalloc.start()
    try:
        assert check_inputs.at_start(tree, "tests/golden.txt") == "x" * check_inputs.HEAD
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_which_files_of_a_commit_decide_is_found_out_once_whatever_becomes_of_the_worktree(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo", {"app.py": "\n", "tests/test_app.py": TEST, "suite.sh": SUITE})
    (repo / "tests/again.py").symlink_to("test_app.py")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "link")
    tree = worktrees.create(repo, tmp_path / "worktrees/s1", "watchfloor/s1", tmp_path / "s1/git/private")
    rules = Rules(("./suite.sh",))
    first = check_inputs.guarded(tree, rules)
    assert first == {"tests/test_app.py", "tests/again.py", "suite.sh"}
    put("tests/test_more.py", TEST)(tree.root)
    put("suite.sh", "exit 0\n")(tree.root)
    assert check_inputs.guarded(tree, rules) is first
    assert check_inputs.guarded(tree, Rules(("true",))) == first - {"suite.sh"}

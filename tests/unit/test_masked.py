"""Which checks hide that what they run failed, and that honest ones are left alone."""

from __future__ import annotations

import pytest

from harness.checks.masked.masked import masked
from harness.events.plan.masked_check_events import MaskedCheck
from harness.plan.files.criteria import commands
from harness.workspace.facts.gather import parse_shell

FILES = {
    "check.sh": "#!/bin/sh\npython3 -m unittest 2>&1 | tail -1\n",
    "ok.sh": "#!/bin/bash\nset -euo pipefail\npytest -q | tee log\n",
    "run_tests.sh": "#!/bin/bash\npytest -q\necho done\n",
    "e.sh": "#!/bin/bash -e\npytest\necho done\n",
    "src/app.py": "",
    "README": "",
    "Makefile": (
        "test:\n\tpytest -q | tee log\nlint:\n\t-ruff check .\n\techo ok\ngood: dep\n\t@pytest -q\ndep:\n\tmkdir -p x\n"
    ),
    "package.json": '{"scripts":{"test":"jest || true","lint":"eslint .","all":"npm run lint; npm run x","x":"jest"}}',
    "scripts/verify.py": "",
    "tests/run.sh": "for t in tests/*.sh; do sh $t; done\n",
    "scripts/check.sh": "fail=0\npytest || fail=1\nruff check . || fail=1\nexit $fail\n",
}
"""The commit that checks are looked at with."""
MASKED = [
    "sh check.sh",
    "bash check.sh",
    "./check.sh",
    "python3 -m unittest | tail -1",
    "pytest -q | tail -n 1",
    "pytest -q | grep -c passed",
    "pytest | tee f >/dev/null",
    "pytest >/dev/null || echo bad",
    "pytest || true",
    "pytest || :",
    "pytest ; true",
    "pytest; echo $?",
    "! pytest",
    "! npm run lint",
    "pytest &",
    "pytest & wait",
    "echo $(pytest)",
    'test -n "$(pytest)"',
    "x=$(pytest); echo $x",
    "if pytest; then echo ok; else echo bad; fi",
    "if pytest; then echo ok; fi",
    "while pytest; do break; done",
    "trap 'exit 0' EXIT; pytest",
    "pytest; exit 0",
    "make -i test",
    "make test",
    "make lint",
    "npm test",
    "npm run all",
    "timeout 60 pytest || :",
    "find . -name 'test_*.py' -exec pytest {} \\;",
    "ruff check --exit-zero .",
    "pytest || exit 0",
    "set -e; set +e; pytest; echo",
    "set -e; pytest | cat",
    "bash -c 'pytest | tail -1'",
    "sh run_tests.sh",
    "bash tests/run.sh",
    "sh e.sh",
    "pytest && echo ok || echo no",
    "./run_all | tail -1",
    "python check.py; echo done",
    "mypy src; pytest",
    "for t in a b; do pytest $t; done",
    "pytest >/dev/null 2>&1 ; [ $? -le 1 ]",
    "pytest || [ $? -eq 1 ]",
    "{ pytest; } || true",
    "(pytest; true)",
    "cd src && pytest | tail",
    "eval 'pytest || true'",
    "xargs -n1 sh -c 'pytest $0; true' < list",
    "env X=1 pytest | head",
    "uv run pytest | tail -3",
    "cargo test 2>&1 | tail -5",
    "go test ./... | grep -v 'no test files'",
    "local x=$(pytest)",
    "export R=$(pytest)",
    "f() { pytest; echo done; }; f",
    "pytest -q 2>&1 | tee log; grep -q passed log",
    "trap 'exit 0' ERR; pytest",
    "pytest; rc=$?; exit 0",
    "npx tsc --noEmit | head",
    "mvn -fn test",
    "golangci-lint run --issues-exit-code 0",
    "case x in x) pytest | tail;; esac",
    "true || pytest",
    "pytest || test -f README",
]
HONEST = [
    "pytest",
    "pytest -q && ruff check .",
    "cd x && make good",
    "set -o pipefail; pytest -q | tee log",
    "bash -o pipefail -c 'pytest | tail -1'",
    "grep -q x f",
    "! grep -rn TODO src",
    'test "$(python app.py)" = x',
    "bash ok.sh",
    "./ok.sh",
    "bash -e run_tests.sh",
    "./e.sh",
    "bash scripts/check.sh",
    "make good",
    "pytest || exit 1",
    "pytest || { echo bad; exit 1; }",
    "if ! pytest; then echo bad; exit 1; fi",
    "pytest; exit $?",
    "pytest; rc=$?; rm -rf x; exit $rc",
    "pytest | tee log; exit ${PIPESTATUS[0]}",
    "pytest & wait $!",
    "pytest & pid=$!; wait $pid",
    "trap 'rm -rf tmp' EXIT; pytest",
    "until pytest; do sleep 1; done",
    "for i in 1 2 3; do pytest && exit 0; done; exit 1",
    "python app.py | grep -q Hello",
    "git diff --exit-code",
    "test -f README",
    "[ -f README ]",
    "test -f a || test -f b",
    "npm ci; npm run x",
    "npm ci && npm run x",
    "find . -name '*.py' | xargs ruff check",
    "find . -name '*.py' -print0 | xargs -0 -n1 python -m py_compile",
    "find src -name '*.py' -exec ruff check {} +",
    'out=$(pytest) && echo "$out"',
    "pytest > log 2>&1 || (cat log; exit 1)",
    "pytest -x --maxfail=1 tests/",
    "./server & sleep 1; curl -f localhost:8080",
    "diff <(python src/app.py) expected.txt",
    "python -m unittest discover -s tests",
    "timeout 300 pytest -q",
    "env CI=1 npm run x",
    "set -e; pytest; echo done",
    "set -euo pipefail; pytest | tail -1; echo done",
    "command -v pytest >/dev/null || { echo none; exit 1; }; pytest",
    "docker compose up -d && pytest",
    "make clean; make good",
    "python -c 'import app'",
    "python -c 'import x; assert x.f() == 1'",
    "test $(ls | wc -l) -eq 3",
    'test -z "$(git status --porcelain)"',
    "[[ $(cat VERSION) == 1.2 ]]",
    "cmp a b",
    "curl -fsS http://localhost/health | grep -q ok",
    "jq -e '.x == 1' f.json",
    "go build ./... && go vet ./... && go test ./...",
    "cargo fmt --check && cargo clippy -- -D warnings",
    "tsc --noEmit",
    "npx eslint . --max-warnings 0",
    "mkdir -p build && cd build && cmake .. && make && ctest",
    "pytest -q || python -m pytest -q --lf",
    "rm -rf out; python src/app.py > out; diff out expected",
    "errs=0; for f in a b; do ruff check $f || errs=$((errs+1)); done; [ $errs -eq 0 ]",
    "failed=(); for t in a b; do sh $t || failed+=($t); done; [ ${#failed[@]} -eq 0 ]",
    '[ "$(wc -l < f)" -eq 3 ]',
    "pytest; status=$?; if [ $status -ne 0 ]; then cat log; fi; exit $status",
    "pytest || test $? -eq 5",
    "node --test",
    "python3 hello.py | diff - expected.txt",
    "echo 1 2 | python src/app.py | grep -qx 3",
    "printf '2\\n' | ./calc | grep -q 4",
    "sh -c 'pytest -q'",
    "make -k good",
    "ls src/*.py",
    "source venv/bin/activate && pytest",
    ". venv/bin/activate; pytest",
    "time pytest",
    "nice -n 10 pytest",
    "(cd src && pytest)",
    "pytest 2>&1 >/dev/null",
    "pytest --co -q | grep -q test_x",
    "python manage.py test",
    "mypy --strict src && pytest",
    "xvfb-run -a npm run x",
    "make -j4 -C sub test",
    "awk 'NR==1 && /x/ {f=1} END {exit !f}' f",
    "sqlite3 db 'select 1' | grep -q 1",
    "python - <<'E'\nassert 1\nE",
]


def found(command: str) -> list[MaskedCheck]:
    def there(path: str) -> bool:
        return path in FILES or any(name.startswith(f"{path}/") for name in FILES)

    return masked([command], lambda path: FILES.get(path, ""), parse_shell, there)


def hides(command: str) -> bool:
    return any(one.hides for one in found(command))


@pytest.mark.parametrize("command", MASKED)
def test_a_check_that_passes_although_its_runner_fails_is_named(command: str) -> None:
    (one,) = found(command)
    assert one.hides
    assert one.command == command
    assert one.why
    assert one.instead


@pytest.mark.parametrize("command", HONEST)
def test_an_honest_check_raises_nothing(command: str) -> None:
    assert not hides(command), found(command)


SERVES = "#!/bin/sh\npython3 -m http.server 8000 &\n"


@pytest.mark.parametrize(
    "criterion",
    ["GET /health returns 200", "With `sh init.sh` running, GET http://127.0.0.1:8000/ returns 200"],
)
def test_what_serves_in_the_background_does_not_decide(criterion: str) -> None:
    """The request behind it does, whose code the script of such a criterion ends with."""
    (made,) = commands([criterion])
    assert masked([made.command], lambda path: SERVES if path == "init.sh" else "", parse_shell, lambda _: True) == []


def test_a_comment_about_a_request_hides_nothing() -> None:
    assert hides("# GET /health returns 200\npytest || true")
    assert hides("sh check.sh & wait")


def test_what_to_write_instead_can_be_copied() -> None:
    assert found("pytest -q | tail -1")[0].instead == "set -o pipefail; pytest -q | tail -1"
    assert not hides("set -o pipefail; pytest -q | tail -1")
    assert found("sh check.sh")[0].instead == "bash -o pipefail check.sh"
    assert not hides("bash -o pipefail check.sh")


def test_the_part_that_decides_is_named_with_the_script_that_it_stands_in() -> None:
    why = found("sh check.sh")[0].why
    assert "check.sh" in why
    assert "tail -1" in why
    assert "python3 -m unittest" in why
    assert "make test" in found("make test")[0].why


def test_a_program_that_the_agent_writes_is_named_and_may_decide() -> None:
    (one,) = found("python3 new.py")
    assert not one.hides
    assert "new.py" in one.why
    assert found("python3 src/app.py") == []
    assert found("python3 new.py | diff - expected.txt") == []
    assert found("node_modules/.bin/jest") == []


def test_what_is_no_shell_or_nested_beyond_measure_does_not_pass_for_honest() -> None:
    assert found("pytest |") == []
    deep = "( " * 300 + "pytest || true" + " )" * 300
    assert hides(deep) or parse_shell(deep) is None

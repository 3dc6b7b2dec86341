"""Criteria that a machine can decide: what a sentence of a plan asks to be run, read or fetched. Pure.

A criterion becomes one shell command, which the harness runs inside the sandbox as it runs every check. A sentence that
names no command, file or address is for a person: `problem` says why, and how to word it instead.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

RUNS = "runs"
FILE = "file"
REQUEST = "request"
_Q = r"[`\"'“”‘’]"
_RUN = re.compile(
    r"^(?P<run>run(?:ning)?|execut(?:e|ing)|the command)?\s*(?P<ticks>`+)(?P<command>(?:(?!(?P=ticks)).)+)(?P=ticks)"
    r"(?!`)\s*(?P<says>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_BY = re.compile(
    r"^.+, decided by (?P<ticks>`+)(?P<command>(?:(?!(?P=ticks)).)+)(?P=ticks)\.?$", re.IGNORECASE | re.DOTALL
)
"""Any sentence, and the command that decides it."""
_LINK = re.compile(
    r"(?:[-–—:,;.]\s*|\band\b\s*|\b(?:it|which|that)\b\s*|\b(?:check|verify|ensure|confirm)\b\s*)+", re.IGNORECASE
)
"""What joins a command to what is said of it, and that to more."""
_CODE = re.compile(
    r"(?:exit(?:s|ed)?|returns?|ends?|fail(?:s|ed)?|finish(?:es)?)\s+(?:with\s+)?(?:an?\s+)?(?:exit\s+)?"
    r"(?:code|status)?\s*"
    r"(?:of\s+)?`?(?P<code>\d{1,3})`?(?!\w|\.\w)",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"(?:(?:exits?|ends?|finish(?:es)?|runs?|completes?)\s+(?:successfully|cleanly|without\s+(?:any\s+)?errors?)"
    r"|(?:reports?|shows?|has|gives?|prints?)\s+no\s+errors?|succeeds?|pass(?:es)?|is\s+green)(?!\w|\.\w)",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"(?:fails?|exits?\s+(?:with\s+)?(?:a\s+)?non-?zero(?:\s+(?:code|status))?)(?!\w|\.\w)", re.IGNORECASE
)
_SILENT = re.compile(r"(?:prints?|outputs?|shows?)\s+(?:nothing|no\s+output)(?!\w|\.\w)", re.IGNORECASE)
_PRINTS = re.compile(
    rf"(?:prints?|outputs?|shows?|(?:its\s+)?output\s+contains)\s+(?:contains\s+)?(?P<open>{_Q})(?P<text>.+?){_Q}",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST = 4000
"""Characters of a sentence; a plan is a file that anybody may have written, and reading it must not take long."""
_MOST_CODE = 125
"""Above it a shell speaks for itself."""
_PATH = (
    rf"(?:(?P<kind>file|folder|directory)\s+{_Q}(?P<quoted>[^`\"'“”‘’]+){_Q}"
    rf"|(?:(?:file|folder|directory)\s+)?{_Q}?(?P<path>[\w./@+-]*[\w-]\.[\w]+|[\w.-]+(?:/[\w.-]*)+"
    rf"|Makefile|Dockerfile|README){_Q}?)"
)
"""A name in quotes behind the word, or whatever has a dot or a stroke in it."""
_HOLDS = re.compile(
    rf"^(?:the\s+)?{_PATH}"
    rf"\s+(?P<not>does not |doesn't |must not )?(?:contains?|includes?|has the (?:text|line))\s+"
    rf"(?:the\s+(?:text|line|string)\s+)?{_Q}(?P<text>.+?){_Q}\s*\.?$",
    re.IGNORECASE | re.DOTALL,
)
_EXISTS = re.compile(
    rf"^(?:the\s+)?{_PATH}\s+"
    r"(?:(?P<not>does not |doesn't |no longer )exists?|exists?(?P<full>\s+and is not empty)?)\s*\.?$",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    rf"^(?:the\s+)?file\s+{_Q}?(?P<path>[^\s`\"'“”‘’]+){_Q}?\s+(?P<says>(?:does not |doesn't |must not )?contains?)\s+"
    rf"{_Q}?(?P<text>[^`\"'“”‘’]+?){_Q}?\s*\.?$",
    re.IGNORECASE,
)
"""Nothing says where the name or the text ends: it could be meant, or be a sentence about files."""
_SERVES = re.compile(r"^(?:with|while)\s+`([^`]+)`\s+(?:is\s+)?(?:running|runs)\s*,?\s*", re.IGNORECASE)
_FETCH = re.compile(
    rf"^(?:an?\s+)?(?:http\s+)?{_Q}?(?P<method>GET|HEAD|POST|PUT|DELETE|PATCH)(?:\s+request\s+to|\s+to)?\s+"
    rf"{_Q}?(?P<url>[^\s`\"'“”‘’]+){_Q}?\s+"
    r"(?:returns?|responds?(?:\s+with)?|answers?(?:\s+with)?|gives?)\s+(?:an?\s+)?(?:(?:status|code|http)\s+)*"
    rf"{_Q}?(?P<status>[1-5]\d\d)(?:\s+ok)?{_Q}?(?!\w)"
    r"(?:\s+(?:and|with)\s+(?:the\s+)?(?:body|a body|text)?\s*(?:contains?|containing)\s+"
    rf"{_Q}(?P<text>.+?){_Q})?\s*\.?$",
    re.IGNORECASE | re.DOTALL,
)
PROGRAMS = (
    "bash bun bundle cargo cmake composer cypress deno dotnet eslint flake8 go gradle ./gradlew jest just make mix"
    " mocha mvn mypy nox node npm npx php phpunit playwright pnpm prettier pyright pytest python python3 rspec ruby"
    " ruff sh tox tsc uv vitest yarn"
)
_SUBCOMMANDS = (
    " all audit build check checks ci clippy compile coverage dlx e2e exec fmt format integration lint run spec test"
    " tests tsc type-check typecheck types unit validate verify vet x "
)
_BARE = re.compile(
    r"^(?:run(?:ning)?\s+)?(?P<command>(?:"
    + "|".join(re.escape(p) for p in PROGRAMS.split())
    + r")(?:\s+[\w./:@=+*-]+)*?)\s+(?:[-–—]\s*)?"
    r"(?:exits?\s+with\s+(?:code\s+|status\s+)?0|passes|succeeds|is green|runs without errors?)\s*\.?$",
    re.IGNORECASE,
)
_ASK = """
import pathlib, sys, time, urllib.error, urllib.request
method, url, status, text, ended = sys.argv[1:]
until = time.monotonic() + 240
said = f"nothing answers {url}"
while time.monotonic() < until:
    places = [url]
    if url[0] == "/":
        rows = [line.split() for name in ("tcp", "tcp6") for line in open("/proc/net/" + name)]
        ports = [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"]
        places = [f"http://{host}:{port}{url}" for port in ports for host in ("127.0.0.1", "[::1]")]
    for place in places:
        try:
            reply = urllib.request.urlopen(urllib.request.Request(place, method=method), timeout=20)
        except urllib.error.HTTPError as exc:
            reply = exc
        except (OSError, ValueError):
            continue
        body = reply.read(1 << 20).decode("utf-8", "replace")
        if str(reply.status) == status and text in body:
            sys.exit()
        said = f"{method} {place}: {reply.status}, {len(body)} characters: {body[:500]}"
        until = min(until, time.monotonic() + 5)
    if pathlib.Path(ended).exists():
        until = min(until, time.monotonic() + 10)
    time.sleep(0.1)
sys.exit(said)
"""
"""Asks until it is answered as wanted; without a port everything that listens, which in a sandbox is what was started
there. What answers otherwise has a few seconds more, what has ended its setting up ten, before it counts.
"""
_BY_ITSELF = "init.sh"
_NONE = f"{_BY_ITSELF} starts what serves this, and there is none"
_VAGUE = (
    ("works", "say what to run, and what it has to print or return"),
    ("correct", "say which input gives which output"),
    ("proper", "say which input gives which output"),
    ("appropriate", "name the one behaviour that is wanted"),
    ("fast", "name a command that measures it and fails above a limit"),
    ("quick", "name a command that measures it and fails above a limit"),
    ("performan", "name a command that measures it and fails above a limit"),
    ("responsive", "name a command that measures it and fails above a limit"),
    ("clean", "name the command of a linter"),
    ("readable", "name the command of a linter, or leave it to a reviewer"),
    ("review", "leave it to a reviewer, or name what he would look for as a command"),
    ("good", "name a command that fails when it is not"),
    ("nice", "name a command that fails when it is not"),
    ("beautiful", "leave it to a reviewer"),
    ("intuitive", "leave it to a reviewer"),
    ("user-friendly", "leave it to a reviewer"),
    ("robust", "name the failure that it has to survive, as a test"),
    ("handle", "name the case, and the test that fails without it"),
    ("error", "name the error, and the test or request that shows it"),
    ("browser", "name a command that drives the browser, such as `npx playwright test login`"),
    ("verify", "name the command that verifies it"),
    ("tested", "name the test command"),
    ("typecheck", "name the command, such as `npm run typecheck`"),
    ("lint", "name the command, such as `npm run lint`"),
    ("test", "name the test command, such as `npm test`"),
    ("document", 'name the file and the text: File `README.md` contains "…"'),
)
FORMS = (
    "Run `CMD` - exits with code 0",
    'File `PATH` contains "TEXT"',
    "File `PATH` exists",
    "GET /PATH returns 200",
    "With `CMD` running, GET http://127.0.0.1:PORT/PATH returns 200",
)
"""How a criterion can be worded that a machine decides; each is one itself."""
ANY_FORM = " · ".join(FORMS)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One sentence that a machine decides: ``command`` exits with 0 exactly when it holds."""

    text: str
    kind: str
    command: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence that no machine decides, and why; ``advice``: how to word it, whatever its words."""

    text: str
    why: str
    advice: str = ""

    @property
    def instead(self) -> str:
        """How to word it instead, with all forms where any will do."""
        return self.advice or _wording(" ".join(self.text.split()))

    @property
    def hint(self) -> str:
        """The advice for this sentence alone; empty when it is nothing but the forms."""
        return self.instead.removesuffix(ANY_FORM).removesuffix(": ")


def parse(text: str) -> Criterion | Problem:
    """What decides this sentence, or why nothing does."""
    line = " ".join(text.split()).strip()
    if not line:
        return Problem(text, "it says nothing", ANY_FORM)
    if len(line) > _LONGEST:
        return Problem(text, f"it has {len(line):,} characters, over {_LONGEST:,}", ANY_FORM)
    serves = _SERVES.match(line)
    asks = line[serves.end() :] if serves is not None else line
    if (match := _FETCH.match(asks)) is not None:
        return _fetch(text, match, serves[1] if serves is not None else "")
    if (match := _BARE.match(line)) is not None:
        return Criterion(text, RUNS, match["command"])
    if (match := _HOLDS.match(line)) is not None:
        return _file(text, match["quoted"] or match["path"], bool(match["not"]), match["text"])
    if (match := _EXISTS.match(line)) is not None:
        path = match["quoted"] or match["path"]
        return _file(text, path, bool(match["not"]), None, "-s" if match["full"] else "-e")
    if (match := _BY.match(text.strip())) is not None:
        return Criterion(text, RUNS, match["command"].strip())
    if (match := _RUN.match(text.strip())) is not None and (found := _run(text, match)) is not None:
        return found
    return Problem(text, "no command, file or request decides it")


def run(command: str) -> str:
    """The sentence that says of a command that it has to exit with 0."""
    return f"Run {_quoted(command)} - exits with code 0"


def decided_by(text: str, command: str) -> str:
    """A sentence with the command that decides it."""
    return f"{text.strip().rstrip('.')}, decided by {_quoted(command)}"


def _quoted(command: str) -> str:
    longest = max((len(found) for found in re.findall(r"`+", command)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if command.startswith("`") or command.endswith("`") else ""
    return f"{ticks}{space}{command}{space}{ticks}"


def is_command(text: str) -> bool:
    """Whether a text that may be a sentence or a command is a command: it begins with a program that is known, and goes
    on as a command does and a sentence does not (`make sure it works`, `go to the page`).
    """
    words = text.split()
    if not words or (text.strip().endswith((".", "!", "?")) and not text.strip().endswith("/...")):
        return False
    if re.match(r"(?:\./|\.\./|[A-Z_]+=\S)", words[0]):
        return True
    if words[0] not in PROGRAMS.split():
        return False
    rest = words[1:]
    if not rest or (len(rest) == 1 and words[0] in ("make", "just")):
        return True
    return f" {rest[0]} " in _SUBCOMMANDS or re.match(r"[-./]|\S+[./:=]\S", rest[0]) is not None


def spoken(command: str) -> str:
    """A command as it is told: the sentence that it was made of, where the command itself says less."""
    first, _, rest = command.partition("\n")
    return first.removeprefix("# ") if first.startswith("# ") and shlex.quote(_ASK) in rest else command


def commands(texts: Sequence[str]) -> list[Criterion]:
    """Those of the sentences that a machine decides, in order."""
    return [found for text in texts if isinstance(found := parse(text), Criterion)]


def problems(texts: Sequence[str]) -> list[Problem]:
    """Those that none decides."""
    return [found for text in texts if isinstance(found := parse(text), Problem)]


@dataclass(slots=True)
class _Wanted:
    """What a sentence says of a command: ``code`` it ends with, -1 for any but 0; ``prints`` each of these texts, or
    nothing at all.
    """

    code: int | None = None
    prints: list[str] = field(default_factory=list)
    silent: bool = False


def _run(text: str, match: re.Match[str]) -> Criterion | Problem | None:
    """What decides it; None when nothing says that the words in quotes are a command."""
    command = match["command"].strip()
    wanted = _said(match["says"])
    if wanted is None:
        why = f"it says more of the command than a machine understands: {match['says'].strip()}"
        return Problem(text, why) if match["run"] else None
    if wanted.prints and not match["run"] and re.fullmatch(r"\w+", command) and command not in PROGRAMS.split():
        return None  # "`Button` shows `Save`"
    tests = [f"grep -qF -- {shlex.quote(one)}" for one in wanted.prints]
    if len(tests) == 1 and wanted.code is None:
        return Criterion(text, RUNS, f"( {command} ) 2>&1 | {tests[0]}")
    if not tests and not wanted.silent:
        return Criterion(text, RUNS, _ends(command, wanted.code))
    held = [_ends("exit $code", wanted.code)] if wanted.code is not None else []
    held += [f"printf '%s\\n' \"$out\" | {test}" for test in tests] + (['test -z "$out"'] if wanted.silent else [])
    return Criterion(text, RUNS, f"out=$( ( {command} ) 2>&1 ); code=$?; printf '%s\\n' \"$out\"; {' && '.join(held)}")


def _ends(command: str, code: int | None) -> str:
    """A command that holds when this one ends so."""
    if code == -1:
        return f"! ( {command} )"
    if code:
        return f"( {command} ); test $? -eq {code}"
    return f"( {command} )" if command.startswith("exit") else command


def _said(says: str) -> _Wanted | None:
    """All that is said of a command, None when some of it is not understood."""
    wanted = _Wanted()
    left = _behind(says)
    while left:
        for form in (_CODE, _GOOD, _BAD, _SILENT, _PRINTS):
            if (match := form.match(left)) is not None:
                break
        else:
            return None
        found = match.groupdict()
        if "code" in found and int(found["code"]) > _MOST_CODE:
            return None
        if "text" in found:
            wanted.prints.append(found["text"])
        elif form is _SILENT:
            wanted.silent = True
        else:
            wanted.code = int(found.get("code", -1 if form is _BAD else 0))
        left = _behind(left[match.end() :])
    return wanted


def _behind(says: str) -> str:
    """What is said, without what joins it to what stands before."""
    stripped = says.strip()
    link = _LINK.match(stripped)
    return stripped[link.end() :].strip() if link is not None else stripped


def _file(text: str, path: str, absent: bool, holds: str | None, is_so: str = "-e") -> Criterion | Problem:
    if path.startswith("/") or ".." in path.split("/"):
        return Problem(text, f"{path} is outside the repository", ANY_FORM)
    negated = "! " if absent else ""
    if holds is None:
        return Criterion(text, FILE, f"{negated}test {is_so} {shlex.quote(path)}")
    quoted = shlex.quote(path)
    there = f"test -f {quoted} && " if absent else ""
    return Criterion(text, FILE, f"{there}{negated}grep -qF -- {shlex.quote(holds)} {quoted}")


def _fetch(text: str, match: re.Match[str], serves: str) -> Criterion | Problem:
    """What serves it is said before it, or is what the repository's own script starts."""
    url = match["url"].strip("`\"'")
    if url.startswith(":") or (serves and url.startswith("/")):
        url = f"http://127.0.0.1{url}"
    if not re.match(r"/|https?://(?:127\.0\.0\.1|localhost)(?::\d+)?(?:/|$)", url):
        return Problem(text, f"{url} is not on the machine of the check", "serve it there, and ask 127.0.0.1")
    asked = shlex.join([match["method"].upper(), url, match["status"], match["text"] or ""])
    begin = f"( {serves} )"
    if not serves:
        there = f"test -f {_BY_ITSELF} || {{ echo {shlex.quote(_NONE)}; exit 1; }}"
        begin = f"{there}\n{{ sh ./{_BY_ITSELF}; echo $? >$at/ended; }}"
    asks = f"python3 -I -c {shlex.quote(_ASK)} {asked} $at/ended"
    ends = "code=$?; kill $! 2>/dev/null; test $code = 0 || tail -c 2000 $at/served; exit $code"
    says = " ".join(text.split())
    return Criterion(text, REQUEST, f"# {says}\nat=$(mktemp -d); {begin} >$at/served 2>&1 & {asks}; {ends}")


def _wording(line: str) -> str:
    if (loose := _LOOSE.match(line)) is not None:
        return f'File `{loose["path"]}` {loose["says"]} "{loose["text"]}"'
    quoted = re.search(r"`([\w./-]+(?: [^`]+)?)`", line)
    if quoted is not None and quoted[1].split(" ")[0] in PROGRAMS.split():
        return f"Run `{quoted[1]}` - exits with code 0"
    found = [better for word, better in _VAGUE if re.search(rf"\b{word}", line, re.IGNORECASE)]
    return f"{found[0]}: {ANY_FORM}" if found else ANY_FORM

"""The places that a piece of shell names: from where its script lies, and where it looks for programs, modules,
variables and lists of tests. Pure.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator

from harness.checks.runner_counts import runs_tests

_LONGEST = 64 << 10
"""Characters of a script in which places are put in."""
_FRONT = re.compile(r"(?<![\w$({])PATH[ \t]*[:?]{0,2}=[ \t]*(\"[^\"]*\"|'[^']*'|[^\s;&|]*)")
_MODULES = re.compile(r"(?<![\w$({])PYTHONPATH[ \t]*[:?]{0,2}=[ \t]*(\"[^\"]*\"|'[^']*'|[^\s;&|]*)")
_LISTS = re.compile(
    r"\s@([\w./-]+)|\$\((?:cat\s+|<\s*)([\w./-]+)\s*\)|`cat\s+([\w./-]+)\s*`"
    r"|\bcat\s+([\w./-]+)\s*\|\s*xargs\b|\bxargs\b[^|;&<\n]*(?:\s-a\s*|\s--arg-file[= ]|<\s*)([\w./-]+)"
)
"""How a runner of tests is told by a file which ones to run."""
_SELF = r"\$0|\$\{0\}|\$BASH_SOURCE|\$\{BASH_SOURCE(?:\[0\])?\}"
_REAL = rf"\$\(\s*(?:realpath|readlink\s+-f)\s+(?:--\s+)?\"?(?:{_SELF})\"?\s*\)"
_OWN = re.compile(rf"\$\(\s*dirname\s+(?:--\s+)?\"?(?:{_SELF}|{_REAL})\"?\s*\)|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}}")
"""How a script finds the folder that it lies in."""
_TOPLEVEL = re.compile(r"\$\(\s*git\s+rev-parse\s+--show-toplevel\s*\)")
_WHERE = re.compile(
    r"\$\(\s*cd\s+(?:--\s+|-P\s+)?\"?(?P<to>[\w./@-]+)\"?[^&|;()]*(?:&>\s*/dev/null\s*)?&&\s*pwd(?:\s+-P)?\s*\)"
    r"|\$\(\s*(?:realpath|readlink\s+-f)\s+(?:--\s+)?\"?(?P<of>[\w./@-]+)\"?\s*\)"
)
_PLACE = re.compile(
    r"^[ \t]*(?:(?:readonly|local|export|declare)\s+(?:-\w+\s+)?)?(\w+)=\"?([\w./@-]{1,200})\"?[ \t]*$", re.M
)
_TOP = "/@/"
"""So begins what lies at the top of the repository, wherever a script is at."""
_ENV_FILE = re.compile(r"--env-file[= ]\"?([\w./-]+)|\bdotenv-(?:filename|path)\s*:=\s*['\"]([\w./-]+)")
_DOTENV = re.compile(
    r"\bpipenv\s+run\b|\bdotenvx?\s+(?:run|-)|^\s*set\s+dotenv-(?:load|required)|^\s*dotenv\s*:.*\.env\b", re.M
)
_HERE = re.compile(r"\$\(pwd\)|`pwd`|\$[({]?(?:PWD|CURDIR)[)}]?")
_REST = re.compile(r"\$[({]?PATH\b")


def at(folder: str, word: str) -> str:
    """The path of what a word names in this folder, from the top of the repository."""
    if word.startswith(_TOP):
        return os.path.normpath(word.removeprefix(_TOP))
    return os.path.normpath(os.path.join(folder, word))


def inside(path: str) -> bool:
    """Whether a path is one of the repository, as far as its text tells."""
    return not path.startswith(("/", "..")) and "$" not in path and "\0" not in path


def placed(text: str, script: str) -> str:
    """The text of a shell script with the places in it that it finds out from its own, or from the repository's."""
    if "$" not in text or len(text) > _LONGEST:
        return text
    here = f"{_TOP}{os.path.dirname(script) or '.'}"
    text = _TOPLEVEL.sub(f"{_TOP}.", _OWN.sub(here, text) if script else text)
    text = _WHERE.sub(lambda match: match["to"] or match["of"], text)
    values = dict(_PLACE.findall(text))
    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda match: values.get(match[1] or match[2], match[0]), text)


def env_files(text: str, folder: str) -> set[str]:
    """Files of variables that are set for what this text runs."""
    names = [name for names in _ENV_FILE.findall(text) for name in names if name]
    names += [".env"] if _DOTENV.search(text) else []
    return {path for name in names if inside(path := at(folder, name))}


def in_front(text: str, folder: str) -> set[str]:
    """Folders of the repository that a piece of shell or a Makefile puts before those of the system."""
    found: set[str] = set()
    for value in _FRONT.findall(text):
        front = _REST.split(_HERE.sub(".", value.strip("\"'")))[0]
        parts = front.split(":") if front == value.strip("\"'") else front.split(":")[:-1]
        found |= {at(folder, part or ".") for part in parts if not part.startswith("~")}
    return {"" if path == "." else path for path in found if inside(path)}


def modules(text: str, folder: str) -> set[str]:
    """Folders of the repository in which Python is told to look for modules."""
    values = (value.strip("\"'") for value in _MODULES.findall(text))
    parts = {at(folder, part or ".") for value in values for part in _HERE.sub(".", value).split(":")}
    return {"" if path == "." else path for path in parts if inside(path)}


def listing(text: str) -> Iterator[str]:
    """Files that tell a runner of tests which ones to run."""
    for part in re.split(r"&&|\|\||[;\n]", text):
        if runs_tests(part) or (" xargs" in part and runs_tests(part.partition(" xargs")[2])):
            yield from (next(filter(None, names)) for names in _LISTS.findall(part))

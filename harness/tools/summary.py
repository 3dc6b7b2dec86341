"""What a tool call does, in one line: from its tool's own words."""

from __future__ import annotations

import re
import shlex

from harness.domain.actions.access import Access, asked
from harness.domain.text.formatting import counted as numbered
from harness.domain.text.line import compact, first, size
from harness.tools import call_subject, registry
from harness.tools.call_subject import line
from harness.tools.tool import CallWords


def call_text(tool: str, data: dict[str, object] | None) -> str:
    """A tool call as a person would write it; ``data`` is the tool's input."""
    if data is None:
        return f"{tool} (large input)"
    argv = data.get("argv")
    if isinstance(argv, list):
        return f"{tool}: " + " ".join(str(part) if part and " " not in str(part) else repr(str(part)) for part in argv)
    for key in ("script", "command"):
        if key in data:
            return f"{tool}: {first(str(data[key]))}"
    if "pattern" in data:
        return f"{tool}: {data['pattern']!s}" + (f" in {data['path']}" if data.get("path") else "")
    if "call" in data:
        return f"{tool}: {data['call']!s}" + (f" matching {data['grep']!s}" if data.get("grep") else "")
    if "path" in data:
        extra = f" ({size(len(str(data['content']).encode('utf-8', 'replace')))})" if "content" in data else ""
        return f"{tool}: {data['path']}{extra}"
    return f"{tool} {compact(data)}" if data else tool


_DOES_NOTHING = re.compile(r"\s*(#.*|(set [-+][A-Za-z]+( pipefail)?)?\s*)")


def script_line(script: str) -> str:
    """A script in one line: its first that does something, and how many others there are."""
    lines = script.strip().split("\n")
    first = next((one for one in lines if not _DOES_NOTHING.fullmatch(one)), lines[0])
    return first.strip() + (f" … (+{numbered(len(lines) - 1, 'line')})" if len(lines) > 1 else "")


def words(tool: str) -> CallWords:
    """How calls of it read; the plain words for a tool that is not ours."""
    return registry.ALL[tool].words if tool in registry.ALL else CallWords()


def what(tool: str, data: dict[str, object] | None) -> str:
    """The call as a person would write it: ``edit a.py``, ``pytest -q``."""
    if data is None or tool not in registry.ALL:
        return line(call_text(tool, data))
    argv = data.get("argv")
    subject = about(tool, data)
    if verb := words(tool).verb:
        said = f"{verb} {subject}"
    elif words(tool).about is not None and subject:
        said = subject
    elif isinstance(argv, list) and argv:
        said = shlex.join(map(str, argv))
    elif "script" in data or "command" in data:
        said = script_line(str(data.get("script", data.get("command"))))
    else:
        return line(call_text(tool, data))
    access = asked(data)
    return line(said) + (f" · {access}" if access in (Access.NETWORK, Access.UNSANDBOXED) else "")


def about(tool: str, data: dict[str, object] | None) -> str:
    """The file, folder or pattern that a call is about."""
    return "(large input)" if data is None else (words(tool).about or call_subject.path)(data)

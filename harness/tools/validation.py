"""Whether the input of a call fits its tool, in one sentence for the model where it does not. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.actions.access import Access, asked
from harness.domain.actions.action import ExecAction, ShellAction
from harness.domain.addresses import MAX_HOSTS, BadAddress, normal_host
from harness.domain.text import fields
from harness.domain.text.formatting import instant
from harness.tools import memory_files
from harness.tools.registry import ALL, CHECK, CHORE, MEMORY, TABLE
from harness.tools.tool import WHY, Writes

MAX_PATH = 4096
MAX_CONTENT = 8 * 1024 * 1024
MAX_SCRIPT = 64 * 1024
MAX_LIST = 128 * 1024
"""Bytes of all the texts of a list."""
_LIMITS = {
    "path": MAX_PATH,
    "cwd": MAX_PATH,
    "glob": MAX_PATH,
    "pattern": MAX_PATH,
    "script": MAX_SCRIPT,
}


def validate(tool: str, value: object) -> str | None:
    """None when the input fits the tool, else one sentence for the model saying what is wrong and what to do."""
    if tool == CHECK:
        return _check_command(value)
    spec = ALL[CHORE] if tool == CHORE else TABLE.get(tool)
    if spec is None:
        return f"there is no tool named {tool[:60]!r}; the tools are {', '.join(TABLE)}"
    if not isinstance(value, dict):
        return f"{tool}: the input must be an object"
    if tool == MEMORY and memory_files.meant(value):
        return memory_files.problem(value)
    known = {**spec.properties, "why": WHY}
    for name in value:
        if name not in known:
            return f"{tool}: unknown field {str(name)[:60]!r}; the fields are {', '.join(known)}"
    for name in spec.required:
        if name not in value:
            return f"{tool}: the field {name!r} is missing"
    for name, item in value.items():
        if problem := _field(known[name], item):
            return f"{tool}: {name} {problem}"
    return _meaning(tool, value)


def _check_command(value: object) -> str | None:
    command = value.get("command") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(command, str) or not command.strip():
        return "check: the field 'command' must be a non-empty string, and the only one"
    return _text("check: command", command, MAX_SCRIPT)


def _field(schema: Mapping[str, object], item: object) -> str | None:
    kind = schema["type"]
    if kind == "string" and not isinstance(item, str):
        return "must be a string"
    if kind == "boolean" and not isinstance(item, bool):
        return "must be true or false"
    if kind == "array" and not (isinstance(item, list) and item and all(isinstance(part, str) for part in item)):
        return "must be a non-empty list of strings"
    if kind == "integer":
        if isinstance(item, bool) or not isinstance(item, int):
            return "must be a whole number"
        least = fields.number(schema, "minimum", 0)
        most = fields.number(schema, "maximum", item)
        if not least <= item <= most:
            return f"must be between {least} and {most}" if "maximum" in schema else f"must be at least {least}"
    choices = fields.texts(schema, "enum")
    if choices and item not in choices:
        return f"must be one of {', '.join(choices)}"
    return None


def _text(where: str, text: str, limit: int) -> str | None:
    if "\0" in text:
        return f"{where} holds a NUL character"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return f"{where} holds half of a surrogate pair, which is no text"
    return f"{where} is {size} bytes, over the limit of {limit}" if size > limit else None


def _meaning(tool: str, value: Mapping[str, object]) -> str | None:
    for name, item in value.items():
        if isinstance(item, str) and name == "content":
            try:
                size = len(item.encode())
            except UnicodeEncodeError:
                return f"{tool}: content holds half of a surrogate pair, which is no text"
            if size > MAX_CONTENT:
                return f"{tool}: content is {size} bytes, over the limit of {MAX_CONTENT}; write it in pieces"
        elif isinstance(item, str) and (problem := _text(f"{tool}: {name}", item, _LIMITS.get(name, MAX_CONTENT))):
            return problem
    for name in ("path", "cwd"):
        if name in value and not value[name]:
            return f"{tool}: {name} is empty"
    if problem := _job(value):
        return f"{tool}: {problem}"
    if problem := _hosts(value):
        return f"{tool}: hosts: {problem}"
    if problem := _listed(tool, value) or ALL[tool].problem(value):
        return problem
    kind = ALL[tool].kind
    if kind == ExecAction.KIND:
        argv = fields.texts(value, "argv")
        if not argv[0]:
            return f"{tool}: the program name is empty"
        return None
    if kind == ShellAction.KIND and not fields.text(value, "script").strip():
        return f"{tool}: the script is empty"
    if ALL[tool].writes is Writes.PIECE:
        if not value["old"]:
            return f"{tool}: old is empty; use write_file to create a file"
        if value["old"] == value["new"]:
            return f"{tool}: old and new are the same, so there is nothing to change"
    return None


def _listed(tool: str, value: Mapping[str, object]) -> str | None:
    """What is wrong with the words of its lists."""
    for name, item in value.items():
        if isinstance(item, list) and (problem := _text(f"{tool}: {name}", "\n".join(item), MAX_LIST)):
            return problem
    return None


def _job(value: Mapping[str, object]) -> str | None:
    """What is wrong with what a call says of jobs."""
    if "limit_s" in value and value.get("job") is not True:
        return "limit_s is the limit of a job; give it together with job: true, else timeout_s"
    if value.get("job") is True and "timeout_s" in value:
        return "timeout_s is the limit of a call; a job has limit_s"
    if value.get("action") in ("status", "cancel") and {"until", "after_s", "at"} & value.keys():
        return "until, after_s and at say when a wait ends; give them with the action wait"
    if "at" in value and "after_s" in value:
        return "at and after_s both say when the wait ends; give one of them"
    if "at" in value and instant(fields.text(value, "at")) is None:
        return "at is a time with its zone, such as 2026-11-24T08:30:00Z"
    return None


def _hosts(value: Mapping[str, object]) -> str | None:
    """What is wrong with the named hosts of a call."""
    hosts = fields.texts(value, "hosts")
    if hosts and asked(value) != Access.NETWORK:
        return 'name them only together with access "network"'
    if len(hosts) > MAX_HOSTS:
        return f"at most {MAX_HOSTS} can be named"
    try:
        for host in hosts:
            normal_host(host)
    except BadAddress as exc:
        return str(exc)
    return None

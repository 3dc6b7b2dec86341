"""The tools of the built-in agent, in one table: what each is, what it writes, how it recovers, its schema for the
model. Standard library only.

A new tool is an entry here and an implementation in `harness.sandbox`.
"""

from __future__ import annotations

from harness.domain.actions.access import ASKED, Access
from harness.domain.actions.action import CheckAction, ExecAction, FileAction, RecordAction, ShellAction
from harness.domain.addresses import MAX_HOSTS
from harness.domain.calls import chores
from harness.tools import call_subject, person_tool, plan_tool
from harness.tools.tool import ANSWERED, CONTAINED, IRREVERSIBLE, READ, REVERSIBLE, CallWords, Tool, Writes

DEFAULT_TIMEOUT_S = 120
MAX_TIMEOUT_S = 3600
JOB = "job"
"""The tool that looks at jobs, ends them and waits for them; the keeper carries it out itself."""
MAX_JOB_S = 365 * 86_400
EXEC = "exec"
"""The tool that runs one program with exact arguments."""
READ_OUTPUT = "read_output"
"""The tool that reads no file but what an earlier call gave; the keeper finds that for it."""
MEMORY = "memory"
HISTORY = "history"

_ACCESS = {
    "type": "string",
    "enum": [str(access) for access in ASKED],
    "description": (
        "sandbox (default): worktree writable, the rest of the system read-only or hidden, no network, /tmp fresh for"
        " each call. network: as sandbox, with the network: the hosts named in `hosts`, else any host, including"
        " services on this machine's loopback; a human is asked. unsandboxed: no sandbox at all; a human is asked, use"
        " it only when nothing else works."
    ),
}
_HOSTS = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": MAX_HOSTS,
    "description": (
        'With access network: the only hosts the call can reach, e.g. ["pypi.org", "files.pythonhosted.org:443"],'
        " through the HTTP proxy that the environment names (curl, git, pip and npm use it by themselves). A host"
        " without a port means 80 and 443. Name them: a person allows that sooner, and a rule may allow it at once."
    ),
}
_TIMEOUT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_TIMEOUT_S,
    "description": f"Seconds after which the call is killed (default {DEFAULT_TIMEOUT_S}).",
}
_AS_JOB = {
    "type": "boolean",
    "description": (
        "True: start it as a job, which goes on after this call while you do other work: for whatever takes longer than"
        " a few minutes (training, a long build, a server). The result names the job, e.g. j1; the tool `job` waits for"
        " it or ends it, read_output reads what it printed."
    ),
}
_JOB_LIMIT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_JOB_S,
    "description": "With job: seconds after which the job is ended (default a day), instead of timeout_s.",
}
_CWD = {
    "type": "string",
    "description": "Folder to run in: inside the worktree, relative to the folder you start in (the default).",
}
_PATH = "Path relative to the folder you start in (an absolute path inside the worktree works too)."


TABLE: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "read_file",
            FileAction.KIND,
            READ,
            "Read a text file. Lines come numbered as `   12\\ttext`; the numbers are not part of the file. A long file"
            " comes in pieces of whole lines, about 8 KB each; the last line says how to go on. Binary files are"
            " refused.",
            {
                "path": {"type": "string", "description": _PATH},
                "offset": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "First line to show, counted from 1 (default 1).",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10000,
                    "description": "How many lines to show at most (default: as many as fit).",
                },
                "column": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Show only the line `offset`, from this character on (from 1): the rest of a line"
                    " that is too long.",
                },
            },
            ("path",),
            words=CallWords("read", ("read", "file")),
        ),
        Tool(
            "write_file",
            FileAction.KIND,
            REVERSIBLE,
            "Create a file or replace its whole content, atomically. Missing folders are created.",
            {
                "path": {"type": "string", "description": _PATH},
                "content": {"type": "string", "description": "The whole new content."},
            },
            ("path", "content"),
            Writes.WHOLE,
            words=CallWords("write"),
        ),
        Tool(
            "edit_file",
            FileAction.KIND,
            REVERSIBLE,
            "Replace one exact piece of text in a file. `old` must occur exactly once (give enough lines around it)"
            " unless `all` is true.",
            {
                "path": {"type": "string", "description": _PATH},
                "old": {
                    "type": "string",
                    "description": "The exact text to replace, with its indentation, without line numbers.",
                },
                "new": {"type": "string", "description": "What stands there afterwards."},
                "all": {"type": "boolean", "description": "Replace every occurrence (default false)."},
            },
            ("path", "old", "new"),
            Writes.PIECE,
            words=CallWords("edit"),
        ),
        Tool(
            "list_files",
            FileAction.KIND,
            READ,
            "List files below a folder, sorted by name; folders of generated files such as node_modules are named but"
            " not entered, .git is left out.",
            {
                "path": {"type": "string", "description": "Folder to list (default: the one you start in)."},
                "glob": {
                    "type": "string",
                    "description": (
                        "Only paths that match, e.g. `**/*.py` or `*.md` (a pattern without `/` matches file names in"
                        " every folder)."
                    ),
                },
            },
            (),
            words=CallWords("list", ("listed", "folder"), "file"),
        ),
        Tool(
            "search",
            FileAction.KIND,
            READ,
            "Search file contents with a regular expression; gives `path:line:text`.",
            {
                "pattern": {
                    "type": "string",
                    "description": "Regular expression (the common subset of Rust and Python syntax).",
                },
                "path": {
                    "type": "string",
                    "description": "Folder or file to search (default: the one you start in).",
                },
                "glob": {"type": "string", "description": "Only files that match, e.g. `*.py`."},
            },
            ("pattern",),
            words=CallWords("search", ("searched", "time"), "hit", about=call_subject.pattern),
        ),
        Tool(
            READ_OUTPUT,
            FileAction.KIND,
            READ,
            "Read the output of an earlier call of this session again: all of it, also what was left out or cleared."
            " It comes in numbered pieces of about 8 KB, or as the lines that match `grep`; the last line says how to"
            " go on. A very long line counts as several.",
            {
                "call": {
                    "type": "string",
                    "description": "The id of the call, e.g. c12.0, or of the job, e.g. j1, as its result gives it.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "First line to show or to match, counted from 1 (default 1).",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10000,
                    "description": "How many lines to show at most (default: as many as fit).",
                },
                "grep": {
                    "type": "string",
                    "description": "Only lines that match this regular expression (Python syntax).",
                },
            },
            ("call",),
        ),
        Tool(
            MEMORY,
            RecordAction.KIND,
            REVERSIBLE,
            "What is remembered beyond this conversation: view a memory or list the keys, search by words, write or"
            " delete one. Scope session is this session's own. What you write to scope repository (for every session on"
            " this repository) or user is a lesson: it is remembered once another session says the same or the person"
            " accepts it; say one fact in one plain sentence. Never a secret.",
            {
                "action": {"type": "string", "enum": ["view", "search", "write", "delete"]},
                "scope": {
                    "type": "string",
                    "enum": ["session", "repository", "user"],
                    "description": "Whose memory (view and search: all of them by default; write and delete: session).",
                },
                "key": {"type": "string", "description": "Short name of the memory, such as `how to run the tests`."},
                "text": {"type": "string", "description": "What to remember (8 KB at most), or the words to search."},
                "if_sha": {
                    "type": "string",
                    "description": (
                        "Change it only if its text has this hash (12 digits will do), so that nobody else's change is"
                        " lost; empty: only if nothing stands there."
                    ),
                },
                "days": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 3650,
                    "description": "Forget it after so many days (scope session).",
                },
            },
            ("action",),
        ),
        Tool(
            HISTORY,
            RecordAction.KIND,
            READ,
            "Look into the log of this session: everything that was said, called, decided and recorded, one short line"
            " each with its number (#seq), the newest ones by default. The log is read only.",
            {
                "grep": {"type": "string", "description": "Only records with this text in them, whatever the case."},
                "type": {
                    "type": "string",
                    "description": "Only records of this type or family, e.g. tool.ended, approval, context.",
                },
                "from": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Read on from this number instead of backwards from the newest.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 100,
                    "description": "How many records to show at most (default 30).",
                },
            },
            (),
            words=CallWords("look into", ("looked into its log", "time"), about=call_subject.log),
        ),
        Tool(
            EXEC,
            ExecAction.KIND,
            CONTAINED,
            "Run one program with exact arguments, without a shell. Standard input is empty; standard output and error"
            " come together.",
            {
                "argv": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": 'Program and arguments, e.g. ["python3", "-m", "pytest", "-q"].',
                },
                "access": _ACCESS,
                "hosts": _HOSTS,
                "timeout_s": _TIMEOUT,
                "job": _AS_JOB,
                "limit_s": _JOB_LIMIT,
                "cwd": _CWD,
            },
            ("argv",),
        ),
        Tool(
            "shell",
            ShellAction.KIND,
            CONTAINED,
            "Run a bash script (`bash --norc --noprofile -c`). Prefer `exec` for one program. Nothing stays between"
            " calls but the files of the worktree.",
            {
                "script": {"type": "string", "description": "The script."},
                "access": _ACCESS,
                "hosts": _HOSTS,
                "timeout_s": _TIMEOUT,
                "job": _AS_JOB,
                "limit_s": _JOB_LIMIT,
                "cwd": _CWD,
            },
            ("script",),
        ),
        Tool(
            plan_tool.NAME,
            ANSWERED,
            READ,
            plan_tool.DESCRIPTION,
            plan_tool.PROPERTIES,
            plan_tool.REQUIRED,
            words=CallWords(about=call_subject.fields("action", "entry", "text")),
            problem=plan_tool.problem,
        ),
        Tool(
            person_tool.NAME,
            RecordAction.KIND,
            REVERSIBLE,
            person_tool.DESCRIPTION,
            person_tool.PROPERTIES,
            person_tool.REQUIRED,
            words=CallWords("ask", ends="answered", about=person_tool.subject),
            problem=person_tool.problem,
        ),
        Tool(
            JOB,
            FileAction.KIND,
            READ,
            "Look at the jobs that `exec` or `shell` started with job: true. status: how each is and its last lines."
            " wait: think of nothing until the job has ended, or earlier when it prints a line that fits `until` or"
            " after `after_s`, or `at` a time; it costs nothing while it lasts, so wait instead of asking again and"
            " again. cancel: end it. Files that a job writes change under your hands as long as it runs, and no done"
            " criterion is checked before it has ended.",
            {
                "action": {"type": "string", "enum": ["status", "wait", "cancel"]},
                "job": {"type": "string", "description": "Which one, e.g. j1 (default: the only one, or any)."},
                "until": {
                    "type": "string",
                    "description": (
                        "With wait: a text that ends the wait as soon as the job prints a line that holds it; * stands"
                        " for anything within the line. Lines that you have been shown do not count again."
                    ),
                },
                "after_s": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_JOB_S,
                    "description": "With wait: end the wait after so many seconds; without a job it is a clock.",
                },
                "at": {
                    "type": "string",
                    "description": (
                        "With wait, instead of after_s: end it at this time, with its zone, e.g. 2026-11-24T08:30:00Z"
                        " or 2026-11-24T09:30+01:00."
                    ),
                },
            },
            ("action",),
            words=CallWords("job", about=call_subject.fields("action", "job", "until")),
        ),
    )
}


CHECK = "check"
"""The tool that is the harness's own: it runs a done criterion, and no model is told of it."""
CHORE = "chore"
"""The harness's own too: what it runs on its own account to make the place ready."""
OWN = frozenset({CHECK, CHORE})
ALL: dict[str, Tool] = {
    **TABLE,
    CHECK: Tool(
        CHECK,
        CheckAction.KIND,
        CONTAINED,
        "Run a done criterion.",
        {"command": {"type": "string", "description": "The script that decides."}},
        ("command",),
    ),
    CHORE: Tool(
        CHORE,
        CheckAction.KIND,
        CONTAINED,
        "Do a chore of the harness.",
        {
            "chore": {"type": "string", "description": "What it is for."},
            "command": {"type": "string", "description": "The script."},
            "timeout_s": _TIMEOUT,
        },
        ("chore", "command"),
        words=CallWords(about=chores.subject),
    ),
}
"""Every tool that a call can be of."""


def kind_of(tool: str) -> str:
    """The kind of action that a call is, unless it is a push; empty for a name that is no tool."""
    return ALL[tool].kind if tool in ALL else ""


def starts_process(tool: str) -> bool:
    """True for a call that is carried out by a process of its own; false for a name that is no tool."""
    return tool != JOB and kind_of(tool) in (FileAction.KIND, ExecAction.KIND, ShellAction.KIND, CheckAction.KIND)


def recorded(tool: str) -> bool:
    """True for a call about what is on record, which the supervisor carries out once it is allowed; nothing runs."""
    return kind_of(tool) == RecordAction.KIND


def writes(tool: str) -> Writes:
    """What a call writes to the file it names; nothing for a name that is no tool."""
    return ALL[tool].writes if tool in ALL else Writes.NOTHING


def writes_file(tool: str) -> bool:
    """True for a call that writes the file it names."""
    return writes(tool) is not Writes.NOTHING


def answered(tool: str) -> bool:
    """True for a call that the supervisor answers itself; false for a name that is no tool."""
    return tool in ALL and ALL[tool].kind == ANSWERED


def runs(tool: str) -> bool:
    """True for a call that runs programs; false for a name that is no tool."""
    return tool in ALL and ALL[tool].runs


def effect_class(tool: str, access: Access = Access.SANDBOX) -> str:
    """Effect class for recovery after a crash; whatever leaves the sandbox for writing or running is irreversible."""
    if access in (Access.NETWORK, Access.UNSANDBOXED, Access.PUSH):
        return IRREVERSIBLE
    effect = ALL[tool].effect
    return IRREVERSIBLE if access == Access.OUTSIDE and effect != READ else effect


def may_change_files(tool: str, access: Access = Access.SANDBOX) -> bool:
    """True for a call that may leave the worktree or its git folder other than it found them."""
    if access == Access.PUSH:
        return False
    return tool not in ALL or ALL[tool].effect != READ

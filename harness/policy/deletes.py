"""Which untracked files a command may destroy. Pure and cautious: what cannot be read counts as destroying all of them.

Names are relative to the worktree. This protects work that exists nowhere else from *named* deletion; a program that deletes
files from its own code is the fence's business, and git's for everything that is tracked.
"""

from __future__ import annotations

import fnmatch
import os.path
import re
from collections.abc import Iterable, Mapping, Sequence

from harness.policy import shell
from harness.policy.shell import Command, Word

_REMOVE = frozenset({"rm", "unlink", "rmdir", "shred", "truncate", "srm"})
_REPLACE = frozenset({"mv", "cp", "install", "ln", "rsync"})
_DELETING = _REMOVE | _REPLACE | {"tee", "dd", "find", "git", "sed", "perl", "trash", "fd", "fdfind"}
_NAMED = re.compile(
    r"(?<![\w-])(" + "|".join(sorted(_REMOVE | {"mv", "cp", "dd", "tee"})) + r")(?![\w-])|-delete|git\b.*\b(clean|reset|stash|checkout|restore|switch)|>",
    re.DOTALL,
)
_WRAPPERS = frozenset(
    {
        "env",
        "nice",
        "ionice",
        "nohup",
        "timeout",
        "setsid",
        "stdbuf",
        "time",
        "sudo",
        "doas",
        "command",
        "builtin",
        "exec",
        "busybox",
        "toybox",
        "chroot",
        "unshare",
    }
    | {"flock", "watch", "xargs", "parallel", "entr", "strace", "ltrace", "script", "chrt", "taskset", "prlimit", "setarch", "runuser", "su", "coproc"}
)
_INDIRECT = frozenset({"eval", "source", ".", "trap", "alias", "sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "ssh"})
_INTERPRETERS = re.compile(r"(python|perl|ruby|node|php|awk|gawk|mawk|lua|deno|bun)[\d.]*\Z|nawk\Z|sed\Z|ed\Z|ex\Z|vim?\Z")
_HIDDEN = re.compile(r"(\$\(|`|<\()[^)`]*(?<![\w-])(" + "|".join(sorted(_DELETING)) + r")(?![\w-])", re.DOTALL)
_AS_COMMAND = re.compile(r"(^|=|!)\s*(" + "|".join(sorted(_DELETING)) + r")\s")
_ONLY_TEXT = frozenset({"echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "git"})
_EDITORS = frozenset({"ed", "ex", "vi", "vim"})
_MOVES = frozenset({"cd", "pushd", "popd"})
_LOSES = re.compile(r"unlink|rmtree|remove|rename|truncate|delete|replace|open|write|\brm\b|>")
_TRUNCATING = frozenset({">", ">|", "&>"})


def by_argv(argv: Sequence[str], untracked: Sequence[str], cwd: str = ".") -> list[str]:
    """Untracked files that running ``argv`` in ``cwd`` (relative to the worktree) may destroy."""
    if not untracked:
        return []
    return sorted(_command(Command(tuple(Word(a) for a in argv)), " ".join(argv), untracked, cwd))


def by_script(script: str, tree: Mapping[str, object] | None, untracked: Sequence[str], cwd: str = ".") -> list[str]:
    """The same for a shell script and its tree; None as tree = it does not parse."""
    if not untracked:
        return []
    if tree is None or len(script) > shell.MAX_SCRIPT:
        return sorted(untracked)
    try:
        commands = shell.commands(tree)
        # Arithmetic, `test -v`, `declare`, prompts and the like run substitutions that stand in quoted text.
        if any(_HIDDEN.search(text) for text in shell.literals(tree)):
            return sorted(untracked)
    except (shell.TooComplex, RecursionError):
        return sorted(untracked)
    removes = any(c.words and os.path.basename(c.words[0].text or "") in _REMOVE for c in commands)
    moves = any(c.words and (c.words[0].text in _MOVES or c.words[0].text is None) for c in commands)
    lost: set[str] = set()
    for command in commands:
        hit = _command(command, script, untracked, cwd)
        if moves and (hit or _names_deletion(command)):
            return sorted(untracked)
        if removes and command.words and os.path.basename(command.words[0].text or "") == "mv":
            hit |= _hits([w for w in command.words[1:] if not _option(w)], untracked, cwd)
        lost |= hit
        if len(lost) == len(untracked):
            break
    return sorted(lost)


def _names_deletion(command: Command) -> bool:
    name = os.path.basename(command.words[0].text or "") if command.words else ""
    return name in _REMOVE | _REPLACE | {"tee", "dd"} or any(op in _TRUNCATING for op, _ in command.redirects)


def _command(command: Command, script: str, untracked: Sequence[str], cwd: str) -> set[str]:
    lost: set[str] = set()
    for op, target in command.redirects:
        if op in _TRUNCATING or (op == ">&" and target.text is not None and not re.fullmatch(r"\d+-?|-", target.text)):
            lost |= _hits([target], untracked, cwd)
    if not command.words:
        return lost
    first = command.words[0]
    if first.text is None or first.glob:
        return set(untracked)
    name = os.path.basename(first.text)
    rest = command.words[1:]
    if name in _WRAPPERS:
        return lost | _wrapped(rest, script, untracked)
    if name in _INDIRECT:
        given = " ".join(w.text or "" for w in rest)
        return lost | (set(untracked) if _NAMED.search(script) or _NAMED.search(given) or any(w.text is None for w in rest) else set())
    if name not in _ONLY_TEXT and any(w.text and _AS_COMMAND.search(w.text) for w in rest):
        return set(untracked)
    if _INTERPRETERS.match(name):
        lost |= _interpreted(name, rest, untracked)
    elif name in _REMOVE:
        lost |= _hits([w for w in rest if not _option(w)], untracked, cwd)
    elif name in _REPLACE:
        lost |= _replaced(rest, untracked, cwd)
    elif name == "tee" and not any(w.text in ("-a", "--append") for w in rest):
        lost |= _hits([w for w in rest if not _option(w)], untracked, cwd)
    elif name == "dd":
        lost |= _hits(
            [Word(w.text[3:]) if w.text and w.text.startswith("of=") else w for w in rest if w.text is None or w.text.startswith("of=")], untracked, cwd
        )
    elif name in ("find", "fd", "fdfind"):
        lost |= _found(rest, script, untracked)
    elif name == "git":
        lost |= _git(rest, untracked)
    return lost


def _option(word: Word) -> bool:
    return word.text is not None and word.text.startswith("-") and word.text != "-"


def _wrapped(rest: Iterable[Word], script: str, untracked: Sequence[str]) -> set[str]:
    for word in rest:
        if word.text is None or os.path.basename(word.text) in _DELETING | _INDIRECT or _INTERPRETERS.match(os.path.basename(word.text)):
            return set(untracked)
        if " " in word.text and _NAMED.search(word.text):
            return set(untracked)
    return set()


def _interpreted(name: str, rest: Sequence[Word], untracked: Sequence[str]) -> set[str]:
    inline = name.startswith(("sed", "awk", "gawk", "mawk", "nawk", "ed", "ex", "vi")) or any(w.text and re.match(r"-\w*[ceirEp]", w.text) for w in rest)
    if not inline:
        return set()
    if any(w.text is None for w in rest):
        return set(untracked) if any(w.text and _LOSES.search(w.text) for w in rest) else set()
    code = " ".join(w.text or "" for w in rest)
    if name in _EDITORS or (name.startswith(("perl", "ruby")) and any(w.text and re.match(r"-\w*i", w.text) for w in rest)):
        return {u for u in untracked if os.path.basename(u) in code}
    if name == "sed" and not re.search(r"(^|\s)(-i|--in-place|-\w*i)|\d*[ewW]\s", code):
        return set()
    if re.search(r"rmtree|\brm\s|\brm\b.*-|system|exec", code):
        return set(untracked)
    return {u for u in untracked if os.path.basename(u) in code} if _LOSES.search(code) or name == "sed" else set()


def _replaced(rest: Sequence[Word], untracked: Sequence[str], cwd: str) -> set[str]:
    if any(w.text in ("-n", "--no-clobber") for w in rest):
        return set()
    if any(w.text is not None and (w.text.startswith(("-t", "--target-directory", "--delete", "--remove"))) for w in rest):
        return set(untracked)
    operands = [w for w in rest if not _option(w)]
    if len(operands) < 2:
        return set(untracked) if any(w.text is None or w.glob for w in operands) else set()
    target, sources = operands[-1], operands[:-1]
    if target.text is None or target.glob:
        return set(untracked)
    place = os.path.normpath(os.path.join(cwd, target.text))
    if any(w.text is None or w.glob for w in sources):
        return {u for u in untracked if u == place or _below(u, place)}
    names = [os.path.basename((w.text or "").rstrip("/")) for w in sources]
    into = [os.path.normpath(os.path.join(place, n)) for n in names if n not in ("", ".", "..")]
    if len(into) < len(names):
        into.append(place)
    return {u for u in untracked if u == place or any(u == i or _below(u, i) for i in into)}


def _found(rest: Sequence[Word], script: str, untracked: Sequence[str]) -> set[str]:
    for word in rest:
        if word.text is None:
            return set(untracked)
        if word.text in ("-delete", "-X", "-x", "--exec", "--exec-batch", "-fprint", "-fprintf", "-fls"):
            return set(untracked)
        base = os.path.basename(word.text)
        if base in _DELETING | _INDIRECT | _WRAPPERS or (_INTERPRETERS.match(base) and "-exec" in script):
            return set(untracked)
    return set()


def _git(rest: Sequence[Word], untracked: Sequence[str]) -> set[str]:
    texts = [w.text for w in rest]
    if None in texts:
        return set(untracked)
    words = [t for t in texts if t is not None]
    index = 0
    while index < len(words) and words[index].startswith("-"):
        if words[index] == "-c" or words[index].startswith("--config-env"):
            return set(untracked)
        index += 2 if words[index] in ("-C", "--git-dir", "--work-tree", "--namespace") else 1
    if index >= len(words):
        return set()
    sub, args = words[index], words[index + 1 :]
    short = "".join(a[1:] for a in args if re.fullmatch(r"-[A-Za-z]+", a))
    if sub == "clean":
        return set() if "n" in short or "--dry-run" in args else set(untracked)
    if sub == "stash":
        harmless = args[:1] and args[0] in ("list", "show", "drop", "clear", "create")
        return set() if harmless else set(untracked)
    if sub == "reset":
        return set(untracked) if any(a in ("--hard", "--merge", "--keep") for a in args) else set()
    if sub in ("checkout", "switch", "restore", "read-tree", "rm", "mv", "worktree", "sparse-checkout", "checkout-index"):
        forced = "f" in short or any(a in ("--force", "--discard-changes", "--overwrite-ignore", "--reset", "-u", "--all", "-a", "disable") for a in args)
        return set(untracked) if forced else set()
    if sub in _SAFE_GIT:
        return set()
    return (
        set(untracked)
        if sub in ("filter-branch", "bisect", "rebase", "apply", "am", "submodule") and any("exec" in a or a in ("run", "foreach", "-x") for a in args)
        else set()
    )


_SAFE_GIT = frozenset(
    {
        "status",
        "diff",
        "log",
        "show",
        "add",
        "commit",
        "branch",
        "rev-parse",
        "ls-files",
        "fetch",
        "push",
        "merge",
        "config",
        "blame",
        "grep",
        "tag",
        "describe",
    }
)


def _below(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(folder.rstrip("/") + "/")


def _hits(words: Iterable[Word], untracked: Sequence[str], cwd: str) -> set[str]:
    lost: set[str] = set()
    for word in words:
        if word.text is None:
            return set(untracked)
        place = os.path.normpath(os.path.join(cwd, word.text))
        if place.startswith("/"):
            base = os.path.basename(place)
            lost |= {u for u in untracked if os.path.basename(u) == base or f"/{base}/" in f"/{u}"} if not word.glob else set(untracked)
        elif word.glob:
            lost |= {u for u in untracked if any(fnmatch.fnmatchcase(part, place) for part in _prefixes(u))}
        else:
            lost |= {u for u in untracked if u == place or _below(u, place)}
    return lost


def _prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]

"""Whether a check is made of programs alone that only read: such checks may run side by side, in a sandbox in which
nothing can be written. Pure.

What is not certain counts as one that writes: then it runs alone.
"""

from __future__ import annotations

import re

from harness.checks.check_scripts import simple_commands

_READERS = frozenset(
    {"[", "test", "true", "false", ":", "echo", "printf", "sleep", "cat", "head", "tail", "wc", "cut", "tr", "nl"}
    | {"grep", "egrep", "fgrep", "rg", "cmp", "diff", "comm", "join", "paste", "fold", "rev", "tac", "seq", "expr"}
    | {"ls", "stat", "file", "du", "basename", "dirname", "readlink", "realpath", "pwd", "printenv", "exit"}
    | {"cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum", "od", "hexdump", "strings", "jq"}
)
_QUIET = re.compile(r"(?:[12&]?>\s*/dev/null|2>&1|<\s*[\w./-]+)(?=[\s;|&)]|$)")
"""Redirections that write nothing."""
_UNSURE = re.compile(r"[`<>$#]|\\\n")


def only_reads(command: str) -> bool:
    """Whether nothing of a command can write a file of the worktree."""
    plain = _QUIET.sub(" ", command)
    if _UNSURE.search(plain):
        return False
    found = simple_commands(plain)
    return bool(found) and all(words[0] in _READERS for words in found)

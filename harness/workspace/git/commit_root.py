"""The files of a commit, looked at by name as those of a folder are. Blocking."""

from __future__ import annotations

import errno
import functools

from harness.workspace.git.run import Git

_LINK = "120000"
_FILES = ("100644", "100755")
_MOST_LINK = 4096


class CommitRoot:
    """Paths are relative, with ``/``. What is asked again is remembered."""

    def __init__(self, git: Git, commit: str) -> None:
        self._git = git
        self._commit = commit
        self._entry = functools.cache(self._asked)

    def link_at(self, path: str) -> str | None:
        """Where the link of this name leads; None for what is none. Raises OSError when the commit has no such name,
        GitFailed.
        """
        mode, oid = self._entry(path)
        return self._content(oid, path, _MOST_LINK).decode("utf-8", "surrogateescape") if mode == _LINK else None

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a file. Raises OSError, with EFBIG for a larger one, GitFailed."""
        mode, oid = self._entry(path)
        if mode not in _FILES:
            raise OSError(errno.EINVAL, "is not a regular file", path)
        return self._content(oid, path, limit)

    def _asked(self, path: str) -> tuple[str, str]:
        listed = self._git.run("--literal-pathspecs", "ls-tree", "-z", "--full-tree", self._commit, "--", path)
        for entry in listed.decode("utf-8", "surrogateescape").split("\0"):
            fields, _, name = entry.partition("\t")
            if name == path:
                mode, _, oid = fields.split(" ")
                return mode, oid
        raise FileNotFoundError(errno.ENOENT, "is not in the commit", path)

    def _content(self, oid: str, path: str, limit: int) -> bytes:
        _, data = self._git.call("cat-file", "blob", oid, limit=limit + 1)
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"has more than {limit} bytes", path)
        return data

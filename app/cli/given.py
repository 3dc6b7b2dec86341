"""An option whose text must say something."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

EMPTY = "is empty; leave it out for the default"


class Given(argparse.Action):
    """Keeps a text that is not empty: ``--into "$BRANCH"`` with the variable unset would quietly mean the default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Take the text. Raises ArgumentError for an empty one."""
        if not str(values).strip():
            raise argparse.ArgumentError(self, EMPTY)
        setattr(namespace, self.dest, values)

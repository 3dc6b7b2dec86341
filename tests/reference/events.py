"""`docs/reference/events.md`."""

from __future__ import annotations

import sys
from itertools import groupby

from harness.events import types as t
from tests.reference.markdown import MADE, doc, listed, prose, records, table

_ABOUT = f"""# Events

Every record that a session's log can hold. A line of the log is one record: `seq`, `ts`, `type`, `actor`, `gen` (the \
generation of the lease that wrote it), `v`, `data` and two checksum members (`harness/eventlog/framing.py`). The \
tables name each `type`, the structure that `data` is read into, and its fields; `?` marks one that may be missing. \
Amounts are integers in nano-USD (10⁻⁹ USD), times are UTC RFC 3339. A reader keeps types that it does not know.

{MADE}
"""


def page() -> str:
    """Every event by its module, then the values that events are made of."""
    lines = [_ABOUT]
    by_module = sorted(t.TYPES.values(), key=lambda kind: (kind.__module__, kind.TYPE))
    for module, kinds in groupby(by_module, key=lambda kind: kind.__module__):
        lines += [f"## `{module.replace('.', '/')}.py`", "", prose(sys.modules[module].__doc__), ""]
        rows = [(f"`{kind.TYPE}`", f"`{kind.__name__}`", doc(kind), listed(kind)) for kind in kinds]
        lines += table(("type", "structure", "what it says", "fields"), rows)
    lines += ["## Values in them", ""]
    values = sorted(records(t.TYPES.values()), key=lambda kind: kind.__name__)
    lines += table(("structure", "what it is", "fields"), ((f"`{k.__name__}`", doc(k), listed(k)) for k in values))
    return "\n".join(lines)

"""The form of CHANGELOG.md: an Unreleased section with at least one entry, versions newest first, every entry ends with a full stop."""

import re
import sys
from pathlib import Path

text = (Path(__file__).resolve().parent.parent / "CHANGELOG.md").read_text("utf-8")
sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
problems = []
if not sections or not sections[0].startswith("Unreleased"):
    problems.append("the first section must be Unreleased")
elif not re.search(r"^- ", sections[0], re.MULTILINE):
    problems.append("nothing stands under Unreleased")
versions = [tuple(map(int, m.groups())) for s in sections if (m := re.match(r"(\d+)\.(\d+)\.(\d+) - ", s))]
if versions != sorted(versions, reverse=True):
    problems.append("versions must go from the newest to the oldest")
problems += [f"no full stop: {line}" for line in text.splitlines() if line.startswith("- ") and not line.endswith(".")]
print("\n".join(problems) or "CHANGELOG.md is in order")
sys.exit(1 if problems else 0)

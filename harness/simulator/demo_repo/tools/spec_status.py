"""Which features of SPEC.md exist. Exit code 0 only when all do."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
FEATURES = {"1 amounts": ("tally.money", "parse_amount"), "2 settling up": ("tally.settle", "settle"), "3 markdown": ("tally.report", "as_markdown")}


def exists(module, name):
    try:
        return hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return False


missing = [title for title, (module, name) in FEATURES.items() if not exists(module, name)]
for title in FEATURES:
    print("missing" if title in missing else "   done", title)
sys.exit(1 if missing else 0)

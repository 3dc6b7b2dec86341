"""Write every generated page of `docs/reference`."""

from __future__ import annotations

from tests.reference.pages import FOLDER, PAGES

for name, make in PAGES.items():
    (FOLDER / name).write_text(make(), "utf-8")
    print(f"docs/reference/{name}")

"""Every use of names that Textual calls private; a test fails when another version than `READ_FROM` is installed.

Painting: Textual paints all that changed at the turn of a frame, up to 17 ms later, and has every widget draw all of
its lines for it. Here only the rows that changed are drawn, and what a key changed is painted at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from textual._compositor import Compositor
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers import linux_driver
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

READ_FROM = "8.2.8"
"""The version of Textual that this module was read from."""
Parser = XTermParser
"""What makes events of the terminal's input."""
Driver = linux_driver.LinuxDriver
"""What reads and writes the terminal."""


def use_parser(parser: type[XTermParser]) -> None:
    """Have the driver parse its input by this one: it makes its parser by a name of its module, inside a long loop."""
    vars(linux_driver)["XTermParser"] = parser


def write(app: App[int], sequences: str) -> None:
    """Send sequences to the terminal, where there is one."""
    if app._driver is not None:
        app._driver.write(sequences)


def draw_rows(screen: Screen[object]) -> None:
    """Have a screen's widgets draw the rows that are painted, and no others."""
    screen._compositor = _RowsCompositor()


class _RowsCompositor(Compositor):
    """Has widgets draw the rows that are painted, and no others."""

    _bands: tuple[Region, ...] = ()

    def _render_chops(self, crop: Region, is_rendered_line: Callable[[int], bool]) -> Sequence[Mapping[int, Strip]]:
        self._bands = tuple(bands(crop, is_rendered_line))
        return super()._render_chops(crop, is_rendered_line)

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """(region, clip, strips of that part) for each widget and each band that it has a part in, the front first."""
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            for band in self._bands:
                if seen.overlaps(band):
                    rows = Region(seen.x, band.y, seen.width, band.height)
                    part = seen.intersection(rows)
                    yield region, part, widget.render_lines(part.translate(-region.offset))


def bands(crop: Region, wanted: Callable[[int], bool]) -> Iterator[Region]:
    """The wanted rows of an area, in pieces without a gap, from top to bottom."""
    top = crop.y
    for y in (*crop.line_range, None):
        if y is None or not wanted(y):
            end = crop.bottom if y is None else y
            if end > top:
                yield Region(crop.x, top, crop.width, end - top)
            top = end + 1


def paint(screen: Screen[object]) -> bool:
    """Paint what asked for it since the loop last turned; False when that has to wait for the next frame, because
    nothing did, or because it has to be arranged first.
    """
    app = screen.app
    if not screen.is_current or app.screen is not screen or app._batch_count:
        return False
    if screen._repaint_required or screen._layout_required:
        return False
    compositor = screen._compositor
    asked = {widget for widget in compositor.visible_widgets if widget._repaint_required}
    if not asked or any(widget._layout_required for widget in asked):
        return False
    compositor.update_widgets(asked)
    for widget in asked:
        widget._repaint_required = False  # else it would be painted once more, as it is
    app._display(screen, compositor.render_update(screen_stack=app._background_screens))
    time.sleep(0)  # the thread that writes it out needs the interpreter, which what follows a key would keep
    return True

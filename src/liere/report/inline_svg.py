"""Figures as inline SVG, for pages with light and dark color schemes."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree

from liere.report.drawing import GRID, INK, MUTED

__all__ = ["inline_svg"]

VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", "#ffffff": "var(--paper)"}


def inline_svg(figure: Any, name: str, title: str) -> str:
    """Return a matplotlib figure as an `<svg>` element with real text and the page's CSS colors.

    Args:
        figure: The figure.
        name: Prefix of every id, which keeps ids unique within a page; letters and hyphens.
        title: Text alternative for screen readers.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    unstamped = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=unstamped)
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            # A <style> inside an inline <svg> would apply to the whole page.
            if child.tag.endswith(("}style", "}metadata")):
                parent.remove(child)
    for element in root.iter():
        _make_plain(element, name)
    for size in ("width", "height", "version"):
        del root.attrib[size]
    root.attrib |= {"role": "img", "aria-label": title, "class": "plot"}
    return ElementTree.tostring(root, encoding="unicode")


def _make_plain(element: ElementTree.Element, name: str) -> None:
    """Strip namespaces, which HTML does not support; prefix ids; replace colors with CSS variables."""
    element.tag = _local(element.tag)
    attributes = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            value = f"{name}-{value}"
        elif key == "href":
            value = value.replace("#", f"#{name}-")
        elif key == "clip-path":
            value = value.replace("url(#", f"url(#{name}-")
        elif key == "style":
            value = re.sub("|".join(VARIABLES), lambda match: VARIABLES[match[0]], value)
            value = re.sub(r"font: (\d+ )?([\d.]+px) ", _spell_out, value)
            value = re.sub(r"font-family: [^;]*", "font-family: inherit", value)
        element.set(key, value)


def _spell_out(font: re.Match[str]) -> str:
    """Expand the CSS `font` shorthand that older matplotlib releases write."""
    weight = f"font-weight: {font[1].strip()}; " if font[1] else ""
    return f"{weight}font-size: {font[2]}; font-family: "


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]

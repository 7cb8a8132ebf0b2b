"""Markup: elements that escape what they hold, and data that end no script.

Nothing from a user's file reaches the page but through `element` and `data_block`.
"""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_INDEX = re.compile(r"(?<=NLL)_(\w)\b")
_POWER = re.compile(r"(?<=[\w)])\^(-?\d+(?:\.\d+)?|[a-z])\b")
_VOID = {"br", "hr", "img", "input", "link", "meta"}
# What could end the block, begin a comment in it, or break a line of JavaScript.
_UNSAFE = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\u2028", "\u2029")}
)


class Markup(str):
    """Text that is HTML already; any other text is escaped."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """Escape text, unless it is markup.

    >>> escaped('<script src="x">')
    '&lt;script src=&quot;x&quot;&gt;'
    """
    if isinstance(value, Markup):
        return value
    # A file name may hold bytes that are no text; they become question marks.
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return Markup(html.escape(text.replace("\0", "\ufffd")))


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """Write an element; None and False are left out, True is a bare attribute.

    >>> element("p", "a < b", class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b</p>'
    """
    written = [tag]
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if not _NAME.fullmatch(name):
            raise ValueError(f"{key!r} is no attribute")
        if value is True:
            written.append(name)
        elif value is not None and value is not False:
            written.append(f'{name}="{escaped(value)}"')
    opened = f"<{' '.join(written)}>"
    if tag in _VOID:
        return Markup(opened)
    return Markup(f"{opened}{joined(*children)}</{tag}>")


def joined(*children: object) -> Markup:
    """Put children side by side; None is left out."""
    return Markup("".join(escaped(each) for each in children if each is not None))


def formulas(text: str) -> Markup:
    """Set the indexes and exponents of a sentence as formulas have them.

    >>> formulas("CNLL_n = 0.2 + 0.1·n^-0.9 of a_b")
    'CNLL<sub>n</sub> = 0.2 + 0.1·n<sup>−0.9</sup> of a_b'
    """
    raised = _POWER.sub(
        lambda found: element("sup", found[1].replace("-", "−")),
        _INDEX.sub(r"<sub>\1</sub>", escaped(text)),
    )
    return Markup(raised)


def data_block(name: str, value: Any) -> Markup:
    r"""Write data for the page's script: JSON that nothing in it can end.

    >>> print(data_block("data", ["</script>"]))
    <script type="application/json" id="data">["\u003c/script\u003e"]</script>
    """
    text = json.dumps(
        plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    safe = text.encode("utf-8", "replace").decode("utf-8").translate(_UNSAFE)
    return Markup(
        f'<script type="application/json" id="{escaped(name)}">{safe}</script>'
    )


def plain(value: Any) -> Any:
    """Turn what a result holds into what JSON holds: null for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value

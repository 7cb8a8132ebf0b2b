"""Libraries: the JavaScript that a page carries, its versions, sums and licenses."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Library:
    """A library as it was released, and its license."""

    name: str
    version: str
    source: str
    license_text: str


@cache
def own(name: str) -> str:
    """Read one of our own files."""
    return _folder().joinpath(name).read_text(encoding="utf-8")


@cache
def libraries() -> tuple[Library, ...]:
    """Read the libraries, in the order in which they are loaded.

    A file that is not as it was released is refused: it would run on every page.
    """
    found = []
    for each in json.loads(own("libraries.json")):
        content = _folder().joinpath(each["file"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != each["sha256"]:
            raise RuntimeError(
                f"{each['file']} in this installation of ensize is not"
                f" {each['name']} {each['version']}; install ensize again"
            )
        found.append(
            Library(
                name=each["name"],
                version=each["version"],
                source=content.decode("utf-8"),
                license_text=own(each["license_file"]),
            )
        )
    return tuple(found)


def integrity(script: str) -> str:
    """Name a script in a content security policy, so that it alone may run."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _folder() -> resources.abc.Traversable:
    return resources.files(__package__) / "embedded"

"""Seals: checksums in what stands beside the pools, so that no bit changes unseen.

A checksum guards against disks and networks that fail, not against people: whoever can
write into a store can seal what he writes.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from safetensors.numpy import save

from ensize.stores.files import open_safetensors, read_text, reported
from ensize.stores.networks import checksum, damaged, unlinked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_BROKEN = "its checksum does not fit its content"
_SUM = re.compile(r"[0-9a-f]{64}")
_HEAD = b"# Written by ensize, with its checksum at the end.\n"
_LINE = re.compile(rb"(.*)# checksum ([0-9a-f]{64})\n", re.DOTALL)


def sealed_json(said: Mapping[str, Any]) -> bytes:
    """Write a JSON object with its checksum."""
    known = {**said, "checksum": checksum(said)}
    return (json.dumps(known, indent=1, ensure_ascii=False) + "\n").encode()


def sealed_toml(text: str) -> bytes:
    """Write TOML with its checksum in a last comment, which the first announces."""
    content = _HEAD + text.encode()
    return content + b"# checksum %s\n" % hashlib.sha256(content).hexdigest().encode()


def sealed_arrays(arrays: Mapping[str, NDArray[Any]], said: Mapping[str, str]) -> bytes:
    """Write arrays as .safetensors, with a checksum of all that is in it."""
    held = dict(arrays)
    plain = save(held)
    data = plain[8 + int.from_bytes(plain[:8], "little") :]
    total = checksum({**said, **_layout(arrays)}, [data])
    return save(held, {**said, "checksum": total})


def read_sealed_json(path: Path, remedy: str = "") -> dict[str, Any]:
    """Read a JSON object, if it is as it was written; without a seal, by its form."""
    text = read_text(unlinked(path))
    try:
        said = dict(json.loads(text))
    except (RecursionError, TypeError, ValueError) as error:
        raise damaged(path, "it is no JSON file", remedy) from error
    # The last word is the checksum, even where that is not its name any more.
    sealed = said and _SUM.fullmatch(str([*said.values()][-1]))
    total = said.pop("checksum", None)
    if (sealed or total) and total != checksum(said):
        raise damaged(path, _BROKEN, remedy)
    return said


def check_seal(path: Path) -> None:
    """Refuse a file that is not as it was written."""
    if path.suffix == ".safetensors":
        _check_arrays(unlinked(path))
    elif path.suffix == ".toml":
        _check_toml(unlinked(path))
    else:
        read_sealed_json(path)


def _check_toml(path: Path) -> None:
    """Check TOML, which people may write as well: they do not seal it."""
    content = read_text(path)
    try:
        declared = tomllib.loads(content.decode())
    except (RecursionError, ValueError) as error:
        raise damaged(path, "it is no TOML file") from error
    if not declared:
        raise damaged(path, "it declares nothing")
    sealed = content.startswith(_HEAD) or b"# checksum" in content
    match = _LINE.fullmatch(content)
    if sealed and not (
        match and hashlib.sha256(match[1]).hexdigest() == match[2].decode()
    ):
        raise damaged(path, _BROKEN)


def _check_arrays(path: Path) -> None:
    said, arrays = open_safetensors(path)
    start = min((each.offset for each in arrays.values()), default=0)

    def chunks() -> Iterator[bytes]:
        with path.open("rb") as file:
            file.seek(start)
            while chunk := file.read(2**20):
                yield chunk

    with reported(path):
        total = said.get("checksum")
        sealed = total or any(map(_SUM.fullmatch, said.values()))
        if sealed and total != checksum({**said, **_layout(arrays)}, chunks()):
            raise damaged(path, _BROKEN)


def _layout(arrays: Mapping[str, Any]) -> dict[str, str]:
    """Say what arrays there are; no metadata have a name such as these."""
    return {
        f"[{name}]": f"{each.dtype.name} {tuple(each.shape)}"
        for name, each in arrays.items()
    }

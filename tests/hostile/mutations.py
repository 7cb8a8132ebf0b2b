"""How an input is spoiled: bytes by bytes, texts by tokens, containers by their parts.

Each function takes a `random.Random`, so that every input can be made again from its
number.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile

BORDERS = [0, 1, 2, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32]
BORDERS += [2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**18, 10**30, -1, -(2**63)]
NUMBERS = [str(each) for each in BORDERS]
NUMBERS += ["nan", "inf", "-inf", "1e308", "1e-320", "-1e308", "1e999", "-0.0", "0x10"]
NUMBERS += ["1_0", "٣", "½", "1e", "", " ", "1e3", ".5", "True", "9" * 5000, "1" * 400]
NASTY = [
    "\0",
    "\x1b[31m",
    "[red]",
    "{}",
    "%s%n",
    "../..",
    "/",
    "\\",
    "\ufeff",
    "\u2028",
]
NASTY += ["</script>", "𝔘", "\u202e", "a" * 300, "\r", "\n", "\t", '"', "'", "=", "#"]


def spoil(content, random, tokens=()):
    """Change some of the bytes, or all of them."""
    if random.random() < 0.03:
        return random.randbytes(random.choice([0, 1, 8, 60, 300]))
    content = bytearray(content)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        at = random.randrange(len(content) + 1)
        how = random.randrange(8)
        if how == 0 and content:
            content[min(at, len(content) - 1)] ^= 1 << random.randrange(8)
        elif how == 1:
            del content[at : at + random.choice([1, 2, 8, 100])]
        elif how == 2:
            content[at:at] = random.randbytes(random.choice([1, 2, 4, 8, 64]))
        elif how == 3:
            del content[at:]
        elif how == 4:  # something from elsewhere in it
            start = random.randrange(len(content) + 1)
            content[at:at] = content[start : start + random.choice([1, 4, 16, 200])]
        elif how == 5:  # a number at a border, in some width
            size = random.choice([1, 2, 4, 8])
            number = random.choice(BORDERS) % 2 ** (8 * size)
            order = random.choice(["little", "big"])
            content[at : at + size] = number.to_bytes(size, order)
        elif how == 6 and tokens:
            token = random.choice(tokens).encode("utf-8", "surrogatepass")
            content[at : at + random.choice([0, len(token)])] = token
        else:
            value = random.choice([0, 10, 32, 48, 255])
            content[at : at + random.choice([1, 4])] = bytes([value])
    return bytes(content)


def shape(random):
    """Draw the axes of an array, honest ones and others."""
    return [random.choice([0, 1, 2, 3, *BORDERS]) for _ in range(random.randrange(5))]


DTYPES = ["<f4", "<f8", "<f2", ">f4", "|i1", "<i8", "|b1", "<c8", "|O", "<U5", "|V8"]
DTYPES += ["|S3", "<M8[s]", "<f16", "f4,f4", "(2,)<f4", "|O8", "<x4", "", "<V0", "S0"]


def npy_header(random):
    """Write an .npy header of its form, whatever it says, with few bytes behind it."""
    axes = shape(random)
    text = random.choice([repr(tuple(axes)), repr(axes), "(" * 400, "(3, -2)", "None"])
    if random.random() < 0.6:
        text = repr(tuple(axes))
    entries = [
        f"'descr': {random.choice(DTYPES)!r}",
        f"'fortran_order': {random.choice(['True', 'False', '2', 'None', '()'])}",
        f"'shape': {text}",
    ]
    if random.random() < 0.1:
        entries.append(random.choice(["'x': 1", "'shape': (1,)", "**{}", "[0]*10**9"]))
    if random.random() < 0.1:
        entries.pop(random.randrange(len(entries)))
    header = ("{" + ", ".join(entries) + "}").encode()
    if random.random() < 0.2:
        header = spoil(header, random, NASTY)
    version = random.choice([(1, 0), (2, 0), (3, 0), (1, 0), (9, 9), (0, 0)])
    wide = version != (1, 0)
    length = len(header)
    if random.random() < 0.2:
        length = random.choice(BORDERS) % (2**32 if wide else 2**16)
    size = struct.pack("<I" if wide else "<H", length % (2**32 if wide else 2**16))
    body = random.randbytes(random.choice([0, 1, 24, 200]))
    return b"\x93NUMPY" + bytes(version) + size + header + body


def safetensors_header(random, metadata=None):
    """Write a .safetensors file whose header says what it likes."""
    size = random.choice([0, 8, 24, 96])
    tensors = {}
    for name in random.sample(["logits", "targets", "log_probabilities", "a", ""], 2):
        start = random.choice([0, 0, 8, size, *BORDERS])
        stop = random.choice([size, size, start, *BORDERS])
        tensors[name] = {
            "dtype": random.choice(["F32", "F16", "BF16", "I64", "F8_E4M3", "X", 7]),
            "shape": random.choice([[2, 3], [3, 2, 1], [6], shape(random), None, "x"]),
            "data_offsets": random.choice([[0, size], [start, stop], [start], None]),
        }
    if random.random() < 0.5:
        tensors["__metadata__"] = metadata or random.choice(
            [{}, {"form": "x", "pool": "p", "seed": "1"}, {"a": 1}, [], None, "x"]
        )
    header = json.dumps(tensors).encode()
    if random.random() < 0.1:
        header = random.choice([b"[" * 90000, b"{}", b"null", b"[]", b'{"a":NaN}'])
    if random.random() < 0.2:
        header = spoil(header, random, NUMBERS)
    length = len(header)
    if random.random() < 0.2:
        length = random.choice(BORDERS) % 2**64
    return length.to_bytes(8, "little") + header + random.randbytes(size)


def archive(random, members):
    """Write an .npz of these members, or of others, in ways that zip files allow."""
    buffer = io.BytesIO()
    methods = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]
    methods.append(zipfile.ZIP_LZMA)
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            kept = content
            if random.random() < 0.5:
                kept = npy_header(random)
            elif random.random() < 0.2:
                kept = spoil(content, random)
            named = name if random.random() < 0.9 else random.choice(NASTY[1:]) + name
            info = zipfile.ZipInfo(named)  # of 1980: the same bytes every time
            file.writestr(info, kept, random.choice(methods))
    content = bytearray(buffer.getvalue())
    if random.random() < 0.4:  # sizes, offsets, flags and methods of the directory
        mark = random.choice([b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"])
        at = content.find(mark)
        if at >= 0:
            at += 4 + random.randrange(42)
            size = random.choice([1, 2, 4])
            number = random.choice(BORDERS) % 2 ** (8 * size)
            content[at : at + size] = number.to_bytes(size, "little")
    return bytes(content)


def bomb(random):
    """Write an .npz whose member becomes a thousand times as large, or says so."""
    size = random.choice([2**20, 2**24, 2**27])
    header = (
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({size // 4000}, 1000)}}"
    )
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(118).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("logits.npy", start + bytes(size))
    return buffer.getvalue()


def value(random, depth=0):
    """Draw a value as JSON or TOML may have it."""
    kind = random.randrange(7 if depth < 3 else 5)
    if kind == 0:
        return random.choice(BORDERS)
    if kind == 1:
        return random.choice([0.5, -1.0, 1e308, 5e-324, float("nan"), float("inf")])
    if kind == 2:
        return random.choice([*NASTY, *NUMBERS])
    if kind in (3, 4):
        return random.choice([True, False, None, "", "a"])
    inner = [value(random, depth + 1) for _ in range(random.randrange(3))]
    if kind == 5:
        return inner
    return {random.choice([*NASTY, "a", "0"]): each for each in inner}

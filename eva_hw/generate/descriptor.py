"""The job descriptor as JSON and Markdown."""

import json

from ..abi.descriptor import DESCRIPTOR_BYTES, FIELDS, Opcode

__all__ = ["descriptor_files", "descriptor_json", "descriptor_markdown"]


def descriptor_files():
    """``{file name: text}`` of every description of the descriptor."""
    return {"descriptor.json": descriptor_json(), "descriptor.md": descriptor_markdown()}


def descriptor_json():
    """The table as JSON: ``bytes``, ``opcodes`` and ``fields`` by name."""
    fields = {f.name: {"word": f.word, "lsb": f.lsb, "width": f.width, "help": f.help} for f in FIELDS.values()}
    opcodes = {code.name: code.value for code in Opcode}
    return json.dumps({"bytes": DESCRIPTOR_BYTES, "opcodes": opcodes, "fields": fields}, indent=2) + "\n"


def descriptor_markdown():
    """The table as Markdown."""
    lines = ["# Job descriptor", "",
             f"{DESCRIPTOR_BYTES // 4} little-endian words of 32 bits ({DESCRIPTOR_BYTES} bytes), aligned to "
             f"{DESCRIPTOR_BYTES} bytes. Bits that are not listed are 0.", "",
             "| byte | bits | name | meaning |", "|---|---|---|---|"]
    for f in FIELDS.values():
        bits = f"{f.lsb}" if f.width == 1 else f"{f.lsb + f.width - 1}:{f.lsb}"
        lines.append(f"| 0x{f.word * 4:02x} | {bits} | `{f.name}` | {f.help} |")
    lines += ["", "| opcode | name |", "|---|---|"]
    lines += [f"| {code.value} | {code.name.lower()} |" for code in Opcode]
    return "\n".join(lines) + "\n"

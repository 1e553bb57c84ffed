"""The registers in the forms that people and tools read: JSON, Markdown, a C header, SystemRDL."""

import json
from enum import IntEnum

from ..abi.registers import ErrorCode, REGISTER_BYTES, REGISTERS

__all__ = ["c_header", "register_files", "registers_json", "registers_markdown", "system_rdl"]

_ACCESS = {"ro": "read only", "rw": "read, write", "w1": "writing ones acts, reads 0"}


def register_files():
    """``{file name: text}`` of every register description."""
    return {"registers.json": registers_json(), "registers.md": registers_markdown(),
            "registers.rdl": system_rdl(), "eva_registers.h": c_header()}


def _fields(register):
    """``(name, lsb, width, help)`` of each field; a register without fields is one field ``value``."""
    return register.fields or (("value", 0, 32, register.help),)


def _reset(register, lsb, width):
    return register.reset >> lsb & ((1 << width) - 1)


def registers_json():
    """The table as JSON: ``bytes`` of register space, ``registers`` by name, ``error_codes`` by name."""
    registers = {
        r.name: {"address": r.address, "access": r.access, "reset": r.reset, "help": r.help,
                 "fields": {n: {"lsb": lsb, "width": width, "help": text} for n, lsb, width, text in r.fields}}
        for r in REGISTERS.values()}
    codes = {code.name: code.value for code in ErrorCode}
    return json.dumps({"bytes": REGISTER_BYTES, "registers": registers, "error_codes": codes}, indent=2) + "\n"


def registers_markdown():
    """The table as Markdown."""
    lines = ["# Registers", "",
             f"32-bit registers behind the AXI4-Lite slave ({REGISTER_BYTES} bytes of address space). "
             "Addresses that are not listed are answered with SLVERR; reads of them give 0, writes do nothing.", "",
             "| address | name | access | reset | meaning |", "|---|---|---|---|---|"]
    for r in REGISTERS.values():
        reset = "configuration" if r.name == "CONFIG_HASH" else f"0x{r.reset:08x}"
        lines.append(f"| 0x{r.address:03x} | `{r.name}` | {_ACCESS[r.access]} | {reset} | {r.help} |")
        for name, lsb, width, text in r.fields:
            bits = f"{lsb}" if width == 1 else f"{lsb + width - 1}:{lsb}"
            lines.append(f"| | `.{name}` | | bit {bits} | {text} |")
    lines += ["", "## Error codes", "", "| ERROR_CODE | name |", "|---|---|"]
    lines += [f"| {code.value} | {code.name.lower()} |" for code in ErrorCode]
    return "\n".join(lines) + "\n"


def c_header():
    """Macros for C: addresses, field positions and masks, and the enumerations."""
    lines = ["/* Registers of EVA, generated from the register table. */", "#ifndef EVA_REGISTERS_H",
             "#define EVA_REGISTERS_H", "", f"#define EVA_REGISTER_BYTES 0x{REGISTER_BYTES:x}u"]
    for r in REGISTERS.values():
        lines += ["", f"/* {r.help} ({_ACCESS[r.access]}) */", f"#define EVA_{r.name} 0x{r.address:03x}u"]
        for name, lsb, width, text in r.fields:
            macro = f"EVA_{r.name}_{name.upper()}"
            lines += [f"#define {macro}_LSB {lsb}u",
                      f"#define {macro}_MASK 0x{((1 << width) - 1) << lsb:08x}u /* {text} */"]
    lines += ["", *_c_enum(ErrorCode), "", "#endif"]
    return "\n".join(lines) + "\n"


def _c_enum(enum: type[IntEnum]):
    return ["/* Values of ERROR_CODE */",
            *(f"#define EVA_ERROR_{code.name} {code.value}u" for code in enum)]


def system_rdl():
    """The table as a SystemRDL 2.0 address map, for register tools."""
    lines = ["addrmap eva {", '  name = "EVA control and status registers";',
             "  default regwidth = 32;", "  default accesswidth = 32;"]
    for r in REGISTERS.values():
        lines += ["  reg {", f"    desc = {_quoted(r.help)};"]
        for name, lsb, width, text in _fields(r):
            reset = "" if r.name == "CONFIG_HASH" else f" = 0x{_reset(r, lsb, width):x}"
            lines.append(f"    field {{ {_rdl_access(r)} desc = {_quoted(text)}; }} "
                         f"{name}[{lsb + width - 1}:{lsb}]{reset};")
        lines.append(f"  }} {r.name} @ 0x{r.address:03x};")
    lines.append("};")
    return "\n".join(lines) + "\n"


def _rdl_access(register):
    if register.access == "ro":
        return "sw = r; hw = w;"
    if register.access == "w1":
        return "sw = w; hw = r; singlepulse;"
    # Pending interrupts are set by the hardware and cleared by writing ones.
    return "sw = rw; hw = rw; onwrite = woclr;" if register.name == "IRQ_STATUS" else "sw = rw; hw = r;"


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

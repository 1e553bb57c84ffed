"""Every on-chip memory of a design: what an ASIC flow needs to choose macros."""

from ..sram import Sram

__all__ = ["sram_manifest"]


def sram_manifest(hierarchy):
    """The SRAM instances under a :class:`~eva_hw.generate.hierarchy.Hierarchy`'s top.

    Returns
    -------
    dict
        ``total_bits``, ``total_kib``, ``modules`` (one entry per size: its instances, and the macro that replaces
        it under ``EVA_SRAM_MACRO``) and ``instances`` (one entry per memory, with its hierarchical path).
    """
    instances = []
    for path, module in hierarchy.walk(lambda block: isinstance(block, Sram)):
        sram = hierarchy.blocks[module]
        instances.append({"path": path, "module": module, "depth": sram.depth, "width": sram.width,
                          "lane": sram.lane, "ports": "1 write, 1 read", "bits": sram.depth * sram.width})
    modules = {}
    for entry in instances:
        size = modules.setdefault(entry["module"], {
            "macro": f"{entry['module']}_macro", "depth": entry["depth"], "width": entry["width"],
            "lane": entry["lane"], "bits": entry["bits"], "instances": 0})
        size["instances"] += 1
    total = sum(entry["bits"] for entry in instances)
    return {"total_bits": total, "total_kib": total / 8192, "modules": dict(sorted(modules.items())),
            "instances": instances}

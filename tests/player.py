"""A job played step by step from the bytes in memory, as docs/design.md describes it and no faster.

Nothing of the compiler is used: what it lays out is read back here by plain loops and another arithmetic.
"""

from fractions import Fraction

from tests import oracle


def halves(data):
    """The FP16 bit patterns in ``data``."""
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]


def column_blocks(fields):
    """(first, end) of the vectors of each column block."""
    vectors, width = fields["vectors"], fields.get("block_vectors", 0)
    width = width or vectors
    return [(first, min(vectors, first + width)) for first in range(0, vectors, width)]


def index_rows(read, fields, config):
    """Yields (output, [(codebook, vector, index), ...]) for every row of the job, in memory order.

    The codebooks of all column blocks are numbered through. Also checks that lanes without a vector, and the ends of
    passes, are 0.
    """
    slots, per_pass, beat = config.vectors, config.eu_lanes // config.vectors, config.axi_data_bits // 8
    outputs = fields["outputs"]
    blocks = [(q * fields["codebooks"] + c, first, end) for q, (start, end) in enumerate(column_blocks(fields))
              for c in range(fields["codebooks"]) for first in range(start, end, slots)]
    cursor = fields["row_addr"]
    for tile in range(0, outputs, fields["tile"]):
        for first in range(0, len(blocks), per_pass):
            mine = blocks[first:first + per_pass]
            stored = 1
            while stored < len(mine):
                stored *= 2
            assert cursor % beat == 0
            for output in range(tile, min(outputs, tile + fields["tile"])):
                row = read(cursor, stored * slots)
                cursor += stored * slots
                lanes = []
                for lane, index in enumerate(row):
                    block, slot = divmod(lane, slots)
                    if block < len(mine) and mine[block][1] + slot < mine[block][2]:
                        lanes.append((mine[block][0], mine[block][1] + slot, index))
                    else:
                        assert index == 0, f"lane {lane} of output {output} stands for nothing and holds {index}"
                yield output, lanes
            rest = -cursor % beat
            assert not any(read(cursor, rest)), "the end of a pass's last beat is not 0"
            cursor += rest
    assert cursor - fields["row_addr"] == fields["row_beats"] * beat


def play(read, fields, config):
    """The outputs of one job: for each token a list of bit patterns.

    Parameters
    ----------
    read : function (address, size) -> bytes
    fields : dict
        The decoded descriptor.
    """
    width = 8 << fields["words_log2"]
    entries, outputs = 1 << fields["index_bits"], fields["outputs"]
    size = len(column_blocks(fields)) * fields["codebooks"] * entries * width * 2
    assert 0 <= fields["codebook_beats"] * (config.axi_data_bits // 8) - size < max(config.axi_data_bits // 8, config.rows * 2)
    assert size <= config.codebook_words * 16 or fields["streamed"]
    book = halves(read(fields["codebook_addr"], size))
    scales = halves(read(fields["scale_addr"], outputs * 2))
    biases = halves(read(fields["bias_addr"], outputs * 2)) if fields["has_bias"] else [0] * outputs
    rows = list(index_rows(read, fields, config))
    results = []
    for token in range(fields["tokens"]):
        x = halves(read(fields["x_addr"] + token * fields["x_stride"], fields["vectors"] * width * 2))
        sums, known = [[] for _ in range(outputs)], {}
        for output, lanes in rows:
            for key in lanes:
                if key not in known:
                    codebook, vector, index = key
                    start = (codebook * entries + index) * width
                    bits, _ = oracle.dot(x[vector * width:(vector + 1) * width], book[start:start + width],
                                         fields["exponent"])
                    null = fields["null_entry"] and index == entries - 1
                    known[key] = oracle.decode(0 if null else bits)
                sums[output].append(known[key])
        out = "fp32" if fields["out_fp32"] else "fp16"
        results.append([oracle.finish(_total(terms), scales[o], bias=biases[o], exponent=fields["exponent"], out=out)[0]
                        for o, terms in enumerate(sums)])
    return results


def _total(terms):
    """Their exact sum; integers where all are finite, which is faster than fractions."""
    if any(isinstance(t, float) for t in terms):
        return oracle.add(terms)
    return Fraction(sum(int(t * 2**24) for t in terms), 2**24)

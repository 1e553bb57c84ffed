"""The loops over a GEMM job's tiles, as its rows walk them."""

from amaranth.hdl import Mux, Signal

from ..control.job import COUNT_BITS

__all__ = ["Tiles"]


class Tiles:
    """Row tile, column tile and k tile of the rows that enter: for row tile: for column tile: for k tile.

    Attributes
    ----------
    rows : Signal
        Rows of the tile at hand.
    first_k, last_k, last_column, last_rows, job_last : Signal(1)
    """

    def __init__(self, config, job):
        self.job = job
        self.left = Signal(COUNT_BITS, name="row_tiles_left", reset_less=True)
        self.column = Signal(COUNT_BITS, name="column_tile", reset_less=True)
        self.k = Signal(len(job.k_tiles), name="k_tile", reset_less=True)
        self.rows = Signal(range(config.gemm_rows + 1), name="tile_rows")
        for name in ("first_k", "last_k", "last_column", "last_rows", "job_last"):
            setattr(self, name, Signal(name=name))

    def declare(self, m):
        """The combinational conditions."""
        job = self.job
        m.d.comb += [
            self.rows.eq(Mux(self.last_rows, self.left, job.tile)),
            self.first_k.eq(self.k == 0), self.last_k.eq(self.k + 1 == job.k_tiles),
            self.last_column.eq(self.column + 1 == job.column_tiles), self.last_rows.eq(self.left <= job.tile),
            self.job_last.eq(self.last_k & self.last_column & self.last_rows),
        ]

    def begin(self, m):
        """Starts a job."""
        m.d.sync += [self.left.eq(self.job.rows), self.column.eq(0), self.k.eq(0)]

    def step(self, m):
        """To the next tile."""
        m.d.sync += self.k.eq(self.k + 1)
        with m.If(self.last_k):
            m.d.sync += [self.k.eq(0), self.column.eq(self.column + 1)]
            with m.If(self.last_column):
                m.d.sync += [self.column.eq(0), self.left.eq(self.left - self.job.tile)]

"""OperandLoader: commands, buffer addresses and progress, with fences, rings, slow memory and a slow array.

The bench is the DMA (the clients' beats interleaved at random) and the array, which is done with codebook after codebook
in the order of the sequence, and sooner than it should be with a job whose descriptor asks for too much.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.config import Config
from eva_hw.control.job import job_layout
from eva_hw.control.operands import progress_bits
from eva_hw.dma import dma_command
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import start
from sim.structs import pack, unpack


def random_job(random, config, number):
    """A job's fields, and how many codebooks each of its tiles has."""
    granule = max(config.rows // 8, config.beat_bytes // 16, 1)
    size = 1 << random.randrange(1, config.ring_words.bit_length())  # words of one codebook
    unit = max(size, granule)
    beats = lambda words: words * 16 // config.beat_bytes  # noqa: E731
    streamed = random.random() < 0.5
    most = (3 * config.ring_words if streamed else config.codebook_words) // size
    count = random.choice([1, most, random.randint(1, most)])
    words = -(-count * size // granule) * granule
    tiles = random.randint(1, 3)
    chunk = max(unit, min(config.max_burst_beats * config.beat_bytes // 16, config.ring_words // 4))
    return dict(
        codebook_addr=number * 0x1000000, codebook_beats=beats(words), streamed=int(streamed), book_words=size,
        book_beats=beats(unit), chunk_beats=beats(chunk), outputs=tiles * 10 - random.randrange(10), tile=10,
        x_addr=number * 0x1000000 + 0x800000, x_beats=random.randint(1, min(30, config.x_beats)), x_stride=0x2000,
        fence=int(random.random() < 0.4), tokens=random.randint(1, config.batch_lanes)), count


class Reference:
    """What one job must ask for, and where its beats belong."""

    def __init__(self, config, fields, count, number, ends_early):
        self.config, self.fields, self.number, self.side = config, fields, number, number & 1
        self.tiles = -(-fields["outputs"] // fields["tile"]) if fields["streamed"] else 1
        self.count, self.ends_early = count, ends_early
        self.asked = self.got = self.chunks = self.done_books = 0
        self.rows_asked, self.rows_got, self.x_beats = 0, 0, 0
        self.chunk_of = []

    def place(self, book):
        """Word at which codebook ``book`` of the whole sequence of sequences ends."""
        f, granule = self.fields, self.config.codebook_granule
        tile, inner = divmod(book, self.count)
        tile_words = f["codebook_beats"] * self.config.beat_bytes // 16
        end = (inner + 1) * f["book_words"]
        return tile * tile_words + (tile_words if inner + 1 == self.count else end), granule

    def next_command(self):
        """(address, beats) of the next codebook command, or None."""
        f = self.fields
        tile, inside = divmod(self.asked, f["codebook_beats"])
        if tile == self.tiles:
            return None
        size = f["codebook_beats"] - inside
        if f["streamed"] or self.asked == 0:
            size = min(size, f["chunk_beats"])
        return f["codebook_addr"] + inside * self.config.beat_bytes, size

    def room(self):
        """Beats of a ring that may be asked for; a granule is given back whole."""
        end, granule = self.place(self.done_books - 1) if self.done_books else (0, 1)
        consumed = end // granule * granule * 16 // self.config.beat_bytes
        return self.config.ring_words * 16 // self.config.beat_bytes - (self.asked - consumed)

    def address(self):
        """Where the next codebook beat belongs."""
        half = self.config.codebook_words * 16 // self.config.beat_bytes
        ring = self.config.ring_words * 16 // self.config.beat_bytes
        return self.side * half + (self.got % ring if self.fields["streamed"] else self.got)

    def can_consume(self):
        """The array may be done with the next codebook: it has come, and so has some x."""
        if self.done_books == self.count * self.tiles or not (self.x_beats or self.rows_got):
            return False
        end, granule = self.place(self.done_books)
        return self.got * self.config.beat_bytes // 16 >= -(-end // granule) * granule


class Bench:
    """One clock cycle at a time."""

    def __init__(self, dut, config, random, board, jobs):
        self.dut, self.config, self.random, self.board, self.jobs = dut, config, random, board, jobs
        self.loading = self.building = 0  # jobs that the loader, and the array, are done with
        self.flying = {"codebook": [], "x": []}  # beats left of each command
        self.counts = {"wraps": 0, "early": 0}
        self.expected = None

    def drive(self):
        dut, random = self.dut, self.random
        job = self.jobs[self.loading] if self.loading < len(self.jobs) else None
        dut.valid.value = int(job is not None)
        if job:
            dut.job.value = pack(job_layout(self.config), **job.fields)
        dut.slot.value = self.loading % 4
        self.alone = random.random() < 0.05
        dut.alone.value = int(self.alone)
        dut.codebook_cmd_ready.value, dut.x_cmd_ready.value = int(random.random() < 0.5), int(random.random() < 0.5)
        going = [client for client, flights in self.flying.items() if flights]
        self.beat = random.choice(going) if going and random.random() < 0.7 else None
        for client in self.flying:
            getattr(dut, f"{client}_valid").value = int(self.beat == client)
        dut.x_last.value = int(self.beat == "x" and self.flying["x"][0] == 1)
        self._array()

    def _array(self):
        """Consumes codebooks of the oldest job, and at its end gives its buffer back."""
        dut, random = self.dut, self.random
        consumed = release = 0
        if self.building < len(self.jobs) and self.building <= self.loading:
            job = self.jobs[self.building]
            total = job.count * job.tiles
            if random.random() < 0.3 and job.can_consume():
                end, _ = job.place(job.done_books)
                job.done_books, consumed = job.done_books + 1, 1
                dut.place.value = end % (2 * self.config.ring_words)
                release = job.done_books == total or (job.ends_early and job.rows_got == job.fields["tokens"])
            dut.side.value = job.side
            self.released = release
        else:
            self.released = 0
        dut.consumed.value, dut.release.value = consumed, int(release)

    def sample(self):
        dut, config, board = self.dut, self.config, self.board
        job = self.jobs[self.loading] if self.loading < len(self.jobs) else None
        if self.expected:
            for what, got, want in self.expected():
                board.equal(got, want, what)
        self.expected = None
        if int(dut.codebook_cmd_valid.value) and int(dut.codebook_cmd_ready.value):
            self._codebook_command(job)
        if int(dut.x_cmd_valid.value) and int(dut.x_cmd_ready.value):
            fields = job.fields
            board.equal(unpack(dma_command(config), dut.x_cmd_payload.value), dict(
                addr=fields["x_addr"] + job.rows_asked * fields["x_stride"], beats=fields["x_beats"],
                job=job.number % 4), "x command")
            assert job.rows_asked or job.alone or not fields["fence"], "x behind a fence was asked for too early"
            job.rows_asked += 1
            self.flying["x"].append(fields["x_beats"])
        if job:  # the command of the next cycle may follow what is seen in this one
            job.alone = getattr(job, "alone", False) or (job.asked > 0 and self.alone)
        if self.beat:
            self._beat(job)
        if int(dut.next.value):
            board.equal((job.rows_got, self.flying), (job.fields["tokens"], {"codebook": [], "x": []}), "what has come")
            if not job.ends_early:
                board.equal(job.got, job.tiles * job.fields["codebook_beats"], "codebook beats that came")
            self.counts["early"] += job.got != job.tiles * job.fields["codebook_beats"]
            self.loading += 1
        if self.released:
            self.building += 1

    def _codebook_command(self, job):
        want = job.next_command()
        assert want is not None, "more codebooks were asked for than there are"
        self.board.equal(unpack(dma_command(self.config), self.dut.codebook_cmd_payload.value),
                         dict(addr=want[0], beats=want[1], job=job.number % 4), "codebook command")
        if job.asked:
            assert job.x_beats or job.rows_got or job.fields["fence"], "the second chunk came before x"
        if job.fields["streamed"]:
            assert job.room() >= want[1], "there is no room for what was asked for"
            self.counts["wraps"] += job.asked >= self.config.ring_words * 16 // self.config.beat_bytes
        job.asked += want[1]
        self.flying["codebook"].append(want[1])

    def _beat(self, job):
        dut, config, client = self.dut, self.config, self.beat
        flights = self.flying[client]
        flights[0] -= 1
        if not flights[0]:
            flights.pop(0)
        if client == "codebook":
            self.board.equal(int(dut.codebook_addr.value), job.address(), "codebook address")
            job.got += 1
        else:
            row = job.side * config.batch_lanes + job.rows_got
            self.board.equal(int(dut.x_addr.value), row * config.x_beats + job.x_beats, "x address")
            job.x_beats += 1
            if job.x_beats == job.fields["x_beats"]:
                job.x_beats, job.rows_got = 0, job.rows_got + 1
        self.expected = lambda: self._progress(job)

    def _progress(self, job):
        """What must show in the cycle after a beat."""
        dut, config = self.dut, self.config
        field = lambda port, bits: int(port.value) >> job.side * bits & (1 << bits) - 1  # noqa: E731
        bits = progress_bits(config)
        yield "codebook progress", field(dut.loaded, bits), job.got % (1 << bits)
        yield "tokens there", field(dut.x_token, config.batch_lanes.bit_length()), job.rows_got
        yield "x progress", field(dut.x_beat, config.x_beats.bit_length()), job.x_beats
        yield "open", field(dut.open, 1), int(self.building <= job.number)


@cocotb.test()
async def loads(dut):
    config, random, board = Config.from_dict(parameters()["config"]), rng(), Scoreboard()
    jobs = []
    for number in range(parameters()["jobs"]):
        fields, count = random_job(random, config, number)
        jobs.append(Reference(config, fields, count, number, random.random() < 0.3))
    await start(dut, valid=0, job=0, slot=0, alone=0, codebook_cmd_ready=0, codebook_valid=0,
                x_cmd_ready=0, x_valid=0, x_last=0, release=0, consumed=0, side=0, place=0)
    bench = Bench(dut, config, random, board, jobs)
    for _ in range(400_000):
        if bench.building == len(jobs):
            break
        bench.drive()
        await FallingEdge(dut.clk)
        await ReadOnly()
        bench.sample()
        await RisingEdge(dut.clk)
    board.equal(bench.building, len(jobs), f"jobs done; the loader is at {bench.loading}")
    board.report(**bench.counts)

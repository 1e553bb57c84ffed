"""DescriptorFetcher and JobTable together: a ring in a model of memory, four stages and a writer at random speeds.

Every output is predicted in every cycle from the descriptors alone: commands, disposal of each descriptor, the jobs
that each stage sees, and the interrupts. A run is several segments, each with a ring and a reset of its own; most end
with a bad descriptor or with one that memory does not deliver.
"""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from eva_hw.abi.descriptor import DESCRIPTOR_BYTES, FIELDS, Opcode, encode
from eva_hw.control.fetch import DescriptorFetcher
from eva_hw.control.job import JOB_SLOTS, job_layout
from eva_hw.control.table import STAGE_FIELDS, STAGES, JobTable
from eva_hw.dma import dma_command
from eva_hw.presets import preset
from sim.scoreboard import Scoreboard, parameters, rng
from sim.streams import reset, start
from sim.structs import unpack

NAMES = list(FIELDS)
MASK = 0xFFFFFFFF


def legal(random, config):
    """The fields of a legal job."""
    beat = config.beat_bytes
    address = lambda: random.randrange(1 << config.axi_addr_bits) // beat * beat  # noqa: E731
    w, n = random.randrange(config.max_d.bit_length() - 3), random.randint(1, min(6, config.index_bits))
    codebooks = random.randint(1, min(8, config.codebook_words >> w >> n))
    granule = max(1, config.rows * 2 // beat, 16 // beat)
    outputs = random.randint(1, config.acc_depth)
    return dict(
        opcode=Opcode.VQ_LINEAR, has_bias=random.getrandbits(1), out_fp32=random.getrandbits(1),
        tokens=random.randint(1, config.batch_lanes), tag=random.getrandbits(32), outputs=outputs, tile=outputs,
        vectors=random.randint(1, config.max_words >> w), row_beats=random.randrange(1, 1 << 24), words_log2=w,
        index_bits=n, codebooks=codebooks,
        codebook_beats=-(-(codebooks << w << n << 4) // beat // granule) * granule,
        exponent=random.randrange(32),
        x_stride=random.getrandbits(20) * beat, y_stride=random.getrandbits(20) * beat,
        **{f"{name}_addr": address() for name in ("x", "y", "codebook", "row", "scale", "bias")})


def broken(random, config):
    """A job with one illegal field: (fields, name of that field)."""
    fields = legal(random, config)
    name, value = random.choice([
        ("opcode", 0), ("opcode", 5), ("opcode", 255), ("tokens", 0), ("vectors", 0), ("outputs", 0), ("row_beats", 0),
        ("index_bits", 0), ("codebooks", 0), ("exponent", 32), ("x_stride", 1), ("y_addr", fields["y_addr"] + 1)])
    return {**fields, name: value}, name


class Descriptor:
    """What lies in the ring: ``kind`` (job, fence, interrupt or bad), its bits, and what is to come of it."""

    def __init__(self, kind, random, config):
        self.kind, self.fields, self.name = kind, None, None
        if kind in ("fence", "interrupt"):  # the rest of such a descriptor does not matter
            opcode = Opcode.FENCE if kind == "fence" else Opcode.INTERRUPT
            self.bits = random.getrandbits(8 * DESCRIPTOR_BYTES - 8) << 8 | opcode
        else:
            self.fields, self.name = broken(random, config) if kind == "bad" else (legal(random, config), None)
            self.bits = int.from_bytes(encode(**self.fields), "little")


class Segment:
    """One ring from reset to its end."""

    def __init__(self, dut, config, random, board, count, ending, write_rate, seen):
        self.dut, self.config, self.random, self.board, self.seen = dut, config, random, board, seen
        kinds = random.choices(["job", "fence", "interrupt"], [5, 2, 2], k=count)
        self.ending = ending
        if ending != "none":
            kinds.append("bad" if ending == "bad" else "job")
            kinds += ["job"] * 3  # which must not be reached
        self.descriptors = [Descriptor(kind, random, config) for kind in kinds]
        self.stop = count if ending != "none" else len(kinds)  # the first that is not disposed of
        self.mask = random.choice([0, 1, 7, 63])
        self.base = random.randrange(1 << config.axi_addr_bits - 7) << 7
        self.first = random.choice([0, MASK - random.randrange(count)])
        self.memory, self.written, self.disposed = {}, 0, 0
        self.phase, self.due, self.beats = "idle", None, []
        self.jobs, self.raw, self.fence, self.completed = [], {}, 0, 0
        self.alone = {}
        self.pointers, self.shown = dict.fromkeys(STAGES, 0), dict.fromkeys(STAGES, False)
        self.irqs, self.run, self.cycle = [], 1, 0
        self.rates = {stage: random.choice([0.1, 0.5, 1.0]) for stage in STAGES}
        self.rates["write"] = write_rate
        self.aim = False

    # Driving --------------------------------------------------------------------------------

    def drive(self):
        dut, random = self.dut, self.random
        if random.random() < 0.1:
            self.run = int(random.random() < 0.8)
        if self.written < len(self.descriptors) and self.written - self.disposed <= self.mask and random.random() < 0.3:
            place = self.base + ((self.first + self.written & self.mask) << 7)
            self.memory[place % (1 << self.config.axi_addr_bits)] = self.descriptors[self.written].bits
            self.written += 1
        dut.run.value, dut.base.value, dut.mask.value = self.run, self.base, self.mask
        dut.head.value, dut.tail.value = self.first + self.disposed & MASK, self.first + self.written & MASK
        dut.cmd_ready.value = int(random.random() < 0.5)
        self.beat = bool(self.beats) and random.random() < 0.7
        dut.beat_valid.value = int(self.beat)
        dut.data.value = self.beats[0] if self.beat else random.getrandbits(self.config.axi_data_bits)
        self.next = {stage: self._moves(stage) for stage in STAGES}
        for stage, value in self.next.items():
            getattr(dut, f"{stage}_next").value = int(value)

    def _moves(self, stage):
        """Whether ``stage`` is done with its job in this cycle."""
        if not self.shown[stage]:
            return False
        if stage != "write":
            return self.random.random() < self.rates[stage]
        if min(self.pointers[s] for s in STAGES if s != stage) == self.pointers[stage]:
            return False
        if self.aim and len(self.jobs) - self.completed == 1:  # the last job completes as the interrupt is reached
            return self.due == self.cycle
        return self.random.random() < self.rates[stage]

    # Checking -------------------------------------------------------------------------------

    def check(self):
        self._check_fetcher()
        self._check_table()
        self._step()

    def _get(self, name):
        return int(getattr(self.dut, name).value)

    def _check_fetcher(self):
        """Commands and the disposal of descriptors; notes what happens in this cycle."""
        board, now = self.board, self.descriptors[min(self.disposed, len(self.descriptors) - 1)]
        acts = self.phase == "due" and self.cycle >= self.due
        self.room = len(self.jobs) - self.completed < JOB_SLOTS
        self.pushes = acts and now.kind == "job"
        self.interrupts = acts and now.kind == "interrupt"
        self.advances = acts and (now.kind in ("fence", "interrupt") or (now.kind == "job" and self.room))
        want = dict(cmd_valid=self.phase == "ask", busy=self.phase != "idle", push=self.pushes, ready=self.room,
                    interrupt=self.interrupts, advance=self.advances, bad=self.phase == "stopped")
        for name, value in want.items():
            board.equal(self._get(name), int(value), f"{name} in cycle {self.cycle}")
        if self.phase == "ask":
            payload = unpack(dma_command(self.config), self._get("cmd_payload"))
            self.asked = payload["addr"]
            place = self.base + ((self.first + self.disposed & self.mask) << 7)
            board.equal(payload, dict(addr=place % (1 << self.config.axi_addr_bits), job=0,
                                      beats=max(1, DESCRIPTOR_BYTES // self.config.beat_bytes)), "command")
        if self.phase == "stopped":
            board.equal((self._get("bad_field"), self._get("bad_tag")),
                        (NAMES.index(now.name), now.fields["tag"]), "what is bad")

    def _check_table(self):
        board, done = self.board, self.completed
        oldest = self.jobs[done] if done < len(self.jobs) else None
        board.equal((self._get("empty"), self._get("oldest_slot")), (int(oldest is None), done % JOB_SLOTS), "table")
        for name, port in (("operands", "alone"), ("rows", "rows_alone")):
            if self.shown[name]:  # known a cycle late
                board.equal(self._get(port), int(self.alone[name]), port)
        if oldest:
            board.equal((self._get("oldest_index"), self._get("oldest_tag")),
                        (oldest["index"], oldest["tag"]), "oldest job")
        for stage, pointer in self.pointers.items():
            board.equal((self._get(f"{stage}_valid"), self._get(f"{stage}_slot")),
                        (int(self.shown[stage]), pointer % JOB_SLOTS), stage)
            if self.shown[stage]:
                self._check_job(stage, pointer, self._get(f"{stage}_job"))
            if stage in JobTable.INDEXED:
                waiting = pointer < len(self.jobs)
                board.equal(self._get(f"{stage}_waiting"), int(waiting), f"{stage}_waiting")
                if waiting:
                    board.equal(self._get(f"{stage}_index"), self.jobs[pointer]["index"], f"{stage}_index")

    def _check_job(self, stage, number, raw):
        """The stage's fields are the job's, and stay so; the others are 0."""
        if (stage, number) not in self.raw:
            job, want = unpack(job_layout(self.config), raw), self.jobs[number]
            mine = {name for name in STAGE_FIELDS[stage] if name in want}
            self.board.equal({name: job[name] for name in mine}, {name: want[name] for name in mine}, f"job {number}")
            self.board.equal({name: value for name, value in job.items() if name not in STAGE_FIELDS[stage] and value},
                             {}, f"other fields, {stage}")
            self.raw[stage, number] = raw
        self.board.equal(raw, self.raw[stage, number], f"job {number} does not change, {stage}")

    # What this cycle changes ----------------------------------------------------------------

    def _step(self):
        done = self.completed + self.next["write"]
        if self.interrupts:
            self.irqs.append(len(self.jobs))
            in_flight = len(self.jobs) - self.completed
            self.seen["irq_" + ("empty" if not in_flight else "with_last" if done == len(self.jobs) else "later")] += 1
        self.board.equal(self._get("irq"), int(any(jobs <= done for jobs in self.irqs)), f"irq in cycle {self.cycle}")
        self.irqs = [jobs for jobs in self.irqs if jobs > done]
        self.seen["full"] += self.pushes and not self.room
        self.alone = {stage: pointer == self.completed for stage, pointer in self.pointers.items()}
        for stage, moves in self.next.items():
            self.shown[stage] = not moves if self.shown[stage] else self.pointers[stage] < len(self.jobs)
            self.pointers[stage] += moves
        self.completed = done
        self._step_fetcher()

    def _step_fetcher(self):
        now = self.descriptors[self.disposed] if self.disposed < len(self.descriptors) else None
        if self.advances:
            self.phase, self.aim = "idle", False
            if now.kind == "job":
                kept = {name: value for name, value in now.fields.items() if name not in ("opcode", "vectors")}
                self.jobs.append({**kept, "fence": self.fence, "index": self.first + self.disposed & MASK})
            self.fence = 1 if now.kind == "fence" else 0 if now.kind == "job" else self.fence
            self.seen["fences"] += now.kind == "job" and self.jobs[-1]["fence"]
            self.disposed += 1
        elif self.phase == "idle" and self.run and self.written > self.disposed:
            self.phase = "ask"
        elif self.phase == "ask" and self._get("cmd_ready"):
            self.phase = "read"
            width = self.config.axi_data_bits
            bits = self.memory[self.asked]
            self.beats = [bits >> width * k & ((1 << width) - 1) for k in range(max(1, 8 * DESCRIPTOR_BYTES // width))]
            if self.ending == "unread" and self.disposed == self.stop:
                self.beats = self.beats[:self.random.randrange(len(self.beats))]
                self.phase = "dead"
            self.aim = now.kind == "interrupt" and self.random.random() < 0.8
        elif self.phase == "due" and self.cycle >= self.due and now.kind == "bad":
            self.phase = "stopped"
            self.seen["bad"] += 1
        if self.beat:
            self.beats.pop(0)
            if self.phase == "read" and not self.beats:
                self.phase, self.due = "due", self.cycle + DescriptorFetcher.latency
        self.cycle += 1

    @property
    def over(self):
        """All that can happen has happened."""
        return self.completed == len(self.jobs) and self.disposed == self.stop and (
            self.ending == "none" or self.phase in ("stopped", "dead"))


@cocotb.test()
async def rings(dut):
    config, random, board = preset(parameters()["preset"]), rng(), Scoreboard()
    seen = dict.fromkeys(("full", "bad", "fences", "irq_empty", "irq_with_last", "irq_later"), 0)
    idle = dict.fromkeys(("run", "base", "mask", "head", "tail", "cmd_ready", "beat_valid", "data",
                          *(f"{stage}_next" for stage in STAGES)), 0)
    await start(dut, **idle)
    left, write_rates = parameters()["descriptors"], (0.003, 0.1, 1.0)
    while left > 0:
        count = random.randint(5, 15)
        ending = random.choice(["bad", "bad", "bad", "unread", "none"])
        segment = Segment(dut, config, random, board, count, ending, write_rates[left % 3], seen)
        rest = 40  # cycles in which nothing may happen any more
        while rest:
            segment.drive()
            await FallingEdge(dut.clk)
            await ReadOnly()
            segment.check()
            rest -= segment.over
            assert segment.cycle < 20_000, f"stuck at descriptor {segment.disposed}, {segment.phase}"
            await RisingEdge(dut.clk)
        board.equal((segment.disposed, len(segment.jobs)), (segment.stop, segment.completed), "all is done")
        left -= count
        for name, value in idle.items():
            getattr(dut, name).value = value
        await reset(dut)
    board.report(**seen)

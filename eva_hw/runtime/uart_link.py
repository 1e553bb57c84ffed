"""The host's end of the serial link: requests in, replies out, whatever happens on the line."""

import time
from collections import deque
from dataclasses import dataclass, field

import serial

from ..errors import InputError
from ..fpga.link import (
    HEADER_BYTES, IDENTITY_BYTES, REPLY, REPLY_HEADER_BYTES, RING_BYTES, Command, Identity, Splitter, Status,
    encode_frame, request,
)

__all__ = ["LinkError", "Request", "UartLink"]

#: Bytes of requests under way, so that the board's ring never overflows: the newest one's CRC takes room too.
_WINDOW = RING_BYTES - 8
#: Requests under way: far fewer than sequence numbers, so that an old reply is never taken for a new one.
_MOST = 64
#: Seconds for which a read of the port waits, and the least after which a silent request is repeated.
_POLL, _SOONEST = 0.02, 0.05


class LinkError(InputError):
    """The board did not answer, or refused a request; says which."""


@dataclass(eq=False)
class Request:
    """One request and, once it is answered, its ``reply`` (the payload)."""

    command: Command
    address: int = 0
    count: int = 1
    payload: bytes = b""
    reply: bytes = None
    #: Number of the latest frame, among all frames sent, that carried it.
    latest: int = field(default=0, repr=False)

    @property
    def cost(self):
        """Entries of the board's ring."""
        return HEADER_BYTES + len(self.payload) + 1

    @property
    def reply_bytes(self):
        """Payload of its reply, if all is well."""
        return {Command.IDENTIFY: IDENTITY_BYTES, Command.READ_MEMORY: self.count,
                Command.READ_REGISTER: 4}.get(self.command, 0)

    def __str__(self):
        size = f", {self.count if self.command == Command.READ_MEMORY else len(self.payload)} bytes"
        return f"{self.command.name} at {self.address:#x}{size if self.command in _SIZED else ''}"


_SIZED = (Command.READ_MEMORY, Command.WRITE_MEMORY)


class UartLink:
    """Exchanges frames with a board (``docs/host-link.md``).

    Many requests are under way at once. Replies come in the order of frames, so a reply tells that requests sent
    before its frame and still without one, or their replies, were lost: they are sent again at once. The oldest request
    is also sent again when the board reports a damaged frame, or when no reply has come for a time that follows the
    measured round trips. Each frame has a sequence number of its own, so that it is known which of them a reply
    answers; only a WRITE_REGISTER, alone under way, keeps its number, by which the board knows that it has done it.

    Parameters
    ----------
    port : str
        A serial port, or a pseudo-terminal.
    baud : int
    timeout : float
        Longest time, in seconds, after which a request without a reply is sent again.
    patience : float
        Seconds without any reply after which the board counts as gone.

    Attributes
    ----------
    sent, resent, damaged : int
        Frames sent; among them those sent again; frames that came damaged.

    Raises
    ------
    InputError
        If the port cannot be opened.
    """

    def __init__(self, port, baud, *, timeout=1.0, patience=5.0):
        self.port, self.baud, self.timeout, self.patience = port, baud, timeout, patience
        try:
            self._serial = serial.Serial(port, baud, timeout=_POLL, write_timeout=patience, exclusive=True)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise InputError(f"cannot be opened at {baud} baud: {error}", f"serial port {port}") from None
        self._serial.reset_input_buffer()
        self._splitter = Splitter()
        self._sequence, self.sent, self.resent = 0, 0, 0
        self._frames = {}  # by sequence number: (request, number of the frame, when it was sent)
        self._wait, self._smooth, self._spread = timeout, None, 0.0

    def close(self):
        """Closes the port."""
        self._serial.close()

    @property
    def damaged(self):
        """Frames that came damaged."""
        return self._splitter.damaged

    def identify(self, patience=2.0):
        """The board's :class:`~eva_hw.fpga.link.Identity`; also makes the board forget an earlier session."""
        asked = Request(Command.IDENTIFY)
        self.exchange([asked], min(patience, self.patience))
        return Identity.decode(asked.reply)

    def exchange(self, requests, patience=None):
        """Sends ``requests``, as many at a time as the board can hold, and fills in their replies.

        Raises
        ------
        LinkError
            If the board is silent for ``patience`` seconds, or answers a request with an error.
        """
        waiting, flying = deque(requests), []
        alone = any(r.command == Command.WRITE_REGISTER for r in waiting)
        self._frames.clear()
        heard = alarm = time.monotonic()
        while waiting or flying:
            while waiting and len(flying) < (1 if alone else _MOST) and (
                    sum(r.cost for r in flying) + waiting[0].cost <= _WINDOW):
                flying.append(waiting.popleft())
                self._send(flying[-1])
            answered = [self._take(content, flying) for content in self._receive()]
            now = time.monotonic()
            if any(answered):
                heard = alarm = now
            elif now - heard > (patience or self.patience):
                raise LinkError(f"no answer to {flying[0]} for {now - heard:.1f} s at {self.baud} baud",
                                f"board on {self.port}")
            elif now - alarm > self._wait:
                alarm, self._wait = now, min(2 * self._wait, self.timeout)
                self._repeat(flying[:1])

    # Sending --------------------------------------------------------------------------------

    def _send(self, made, again=False):
        if not (again and made.command == Command.WRITE_REGISTER):
            self._sequence = (self._sequence + 1) & 0xFF
        made.latest = self.sent
        self._frames[self._sequence] = made, self.sent, time.monotonic()
        try:
            self._serial.write(encode_frame(request(
                made.command, self._sequence, made.address, made.count, made.payload)))
        except OSError as error:
            raise LinkError(f"cannot be written to: {error}", f"serial port {self.port}") from None
        self.sent += 1

    def _repeat(self, lost):
        for made in lost:
            self.resent += 1
            self._send(made, again=True)

    # Receiving ------------------------------------------------------------------------------

    def _receive(self):
        """The contents of the frames that have come."""
        try:
            data = self._serial.read(max(1, self._serial.in_waiting))
        except OSError as error:
            raise LinkError(f"cannot be read: {error}", f"serial port {self.port}") from None
        return self._splitter.feed(data)

    def _take(self, content, flying):
        """Handles one frame; returns whether it answered a request."""
        if len(content) < REPLY_HEADER_BYTES:
            return False
        command, sequence, status = content[:REPLY_HEADER_BYTES]
        if command == REPLY:  # the board got something damaged: the oldest request, or garbage
            self._repeat(flying[:1])
            return False
        made, number, since = self._frames.get(sequence, (None, 0, 0.0))
        if made is None or command != made.command | REPLY or made not in flying:
            return False  # an answer to another frame of what has been answered
        if status != Status.OK:
            name = Status(status).name if status in list(Status) else status
            raise LinkError(f"answers {name} to {made}", f"board on {self.port}")
        if len(content) != REPLY_HEADER_BYTES + made.reply_bytes:
            return False
        made.reply = content[REPLY_HEADER_BYTES:]
        flying.remove(made)
        self._measure(time.monotonic() - since)
        self._repeat([other for other in flying if other.latest < number])
        return True

    def _measure(self, seconds):
        """Follows the round trips as RFC 6298 does."""
        if self._smooth is None:
            self._smooth, self._spread = seconds, seconds / 2
        else:
            self._spread += (abs(self._smooth - seconds) - self._spread) / 4
            self._smooth += (seconds - self._smooth) / 8
        self._wait = min(self.timeout, max(_SOONEST, self._smooth + 4 * self._spread))

"""The control socket: length-prefixed JSON frames, and the file descriptors that come with them."""
import json
import os
import select
import socket
import struct

REQUEST_LIMIT_BYTES = 64 << 20
REPLY_LIMIT_BYTES = 4 << 20
MAX_FDS = 253  # the kernel's own limit for one message


class ChannelError(Exception):
    """The judge broke the framing: nothing after it can be understood."""


class Channel:
    """Owns the socket behind `fd`, which no child process inherits."""

    def __init__(self, fd):
        self._socket = socket.socket(fileno=fd)
        self._socket.set_inheritable(False)
        self._socket.setblocking(True)
        self._poll = select.poll()
        self._poll.register(self._socket, 0)

    def receive(self):
        """Returns the next request and its descriptors (the caller's to close); None at the end.

        Raises ChannelError for a broken frame, ValueError for a good frame with bad contents.
        """
        header, fds, _, _ = socket.recv_fds(self._socket, 4, MAX_FDS, socket.MSG_CMSG_CLOEXEC)
        if not header:
            return None
        try:
            header += self._receive_exactly(4 - len(header))
            (length,) = struct.unpack("<I", header)
            if length > REQUEST_LIMIT_BYTES:
                raise ChannelError(f"a request of {length} bytes")
            request = json.loads(self._receive_exactly(length))
            if not isinstance(request, dict):
                raise ValueError("a request is a JSON object")
            if request.get("fds", 0) != len(fds):
                raise ValueError(f"{len(fds)} descriptors came, fds says {request.get('fds', 0)}")
        except BaseException:
            close_all(fds)
            raise
        return request, fds

    def send(self, reply):
        """Sends one frame. Raises ValueError, and sends nothing, when it is over the limit."""
        # ASCII escapes would pass lone surrogates on, which no strict parser takes.
        text = json.dumps(reply, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        data = text.encode("utf-8", "replace")
        if len(data) > REPLY_LIMIT_BYTES:
            raise ValueError(f"a reply of {len(data)} bytes")
        self._socket.sendall(struct.pack("<I", len(data)) + data)

    def hung_up(self):
        """Tells, without waiting, whether the judge has closed its end."""
        return any(events & (select.POLLHUP | select.POLLERR) for _, events in self._poll.poll(0))

    def close(self):
        self._socket.close()

    def _receive_exactly(self, count):
        data = bytearray(count)
        view = memoryview(data)
        while view:
            received = self._socket.recv_into(view)
            if not received:
                raise ChannelError("the socket closed within a frame")
            view = view[received:]
        return bytes(data)


def close_all(fds):
    for fd in fds:
        os.close(fd)

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: the end of a queue pair that the device does not confirm, while its peer on
the other port goes on sending. Until the reset the device writes completions to memory that was the
queues'. It must be nobody else's: most of what is free is taken, and looked at in the end.
  cases-lost.py refused|stuck
  cases-lost.py drop OPCODE          the same of any command, of a process that passes data
"""
import mmap
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pyverbs.enums as e
from pyverbs.addr import GID
from pyverbs.pyverbs_error import PyverbsError

from harness import DESTROY_QP, FLUSH_WQES, MODIFY_QP, PAGE, REG_MR, devices, emulator, fail_command, fault, in_use, poll, same, statuses, struck
from verbs import Port

RECEIVES = 400
MIB = 1 << 20
PATTERN = b"\xa5" * MIB
A, B = devices()[:2]


def connect(port, number, gid):
    port.connect(SimpleNamespace(qp=SimpleNamespace(qp_num=number), gid=GID(gid)))


def victim(pipe):
    """Has receives for messages of no bytes, and ends when it is told to."""
    port = Port(A, e.IBV_QPT_RC, depth=RECEIVES)
    pipe.send((port.qp.qp_num, port.gid.gid))
    connect(port, *pipe.recv())
    for n in range(RECEIVES):
        port.receive(n, 0, 0)
    pipe.send("ready")
    same(statuses(port.receive_cq, 10), ["SUCCESS"] * 10)
    pipe.send("received")
    pipe.recv()
    port.close()


def send(port, count):
    for n in range(count):
        port.send(n, e.IBV_WR_SEND, [port.piece(0, 0)])
    return statuses(port.send_cq, count)


def take_memory(mibs=384):
    """Memory with a pattern: pages that were free a moment ago, one by one."""
    memory = mmap.mmap(-1, mibs * MIB)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, len(memory), MIB):
        memory[at:at + MIB] = PATTERN
    return memory


def untouched(memory):
    for at in range(0, len(memory), MIB):
        if memory[at:at + MIB] != PATTERN:
            page = next(p for p in range(at, at + MIB, PAGE) if memory[p:p + PAGE] != PATTERN[:PAGE])
            raise AssertionError(f"the device wrote to a page that is somebody else's: {memory[page:page + PAGE].strip(PATTERN[:1])[:32].hex()}")


class Graves(threading.Thread):
    """The most graves that were ever seen; the driver's table goes when the device is reset."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = 0
        self.start()

    def run(self):
        while True:
            try:
                self.most = max(self.most, in_use().get("grave", 0))
            except (OSError, ValueError):
                pass
            time.sleep(0.001)


def refused(peer, end, _):
    """The device refuses to stop the queue pair and to take it apart. It is not reset for that."""
    before = struck()
    for opcode in (MODIFY_QP, FLUSH_WQES, DESTROY_QP):
        fail_command(opcode)
    end()
    same(struck() - before >= 2, True, "the faults struck:")
    emulator(cmd="clear_faults", port=0)
    memory = take_memory()
    same(set(send(peer, 100)), {"SUCCESS"}, "what the peer sends:")
    untouched(memory)


def other(begin):
    """A registration by another process."""
    begin.wait()
    try:
        Port(A, e.IBV_QPT_UD)
    except PyverbsError:
        pass


def stuck(peer, end, begin):
    """The device is at another command for so long that it is reset before it looks at this one."""
    before = struck()
    fault("cqp_command", REG_MR, {"delay": 60_000_000_000})
    begin.set()
    while struck() == before:
        time.sleep(0.01)
    ended = threading.Thread(target=end)
    ended.start()
    sent = 0
    # Slowly enough for the receives to last.
    while ended.is_alive() and sent < RECEIVES - 100:
        sent += send(peer, 1).count("SUCCESS")
        time.sleep(0.03)
    memory = take_memory(64)
    peer.send(0, e.IBV_WR_SEND, [peer.piece(0, 0)])
    ended.join()
    same(sent > 50, True, f"{sent} messages reached the queue pair meanwhile:")
    poll(peer.send_cq, 1, 20)
    untouched(memory)


def drop(opcode):
    before = struck()
    fault("cqp_command", opcode, "drop")
    graves = Graves()
    status = subprocess.run(["timeout", "60", "python3", "-u", "tests/guest/cases-user.py", "traffic"], check=False).returncode
    emulator(cmd="clear_faults", port=0)
    same(struck() - before, 1, "faults that struck:")
    print("status", status, "graves", graves.most)


def main(how):
    # What one frees the other is given first, then.
    os.sched_setaffinity(0, {0})
    context = multiprocessing.get_context("fork")
    pipe, theirs = context.Pipe()
    begin = context.Event()
    process = context.Process(target=victim, args=(theirs,))
    process.start()
    theirs.close()
    context.Process(target=other, args=(begin,), daemon=True).start()
    peer = Port(B, e.IBV_QPT_RC, depth=128)
    address = pipe.recv()
    pipe.send((peer.qp.qp_num, peer.gid.gid))
    connect(peer, *address)
    same(pipe.recv(), "ready")
    same(send(peer, 10), ["SUCCESS"] * 10)
    same(pipe.recv(), "received")

    def end():
        pipe.send("end")
        process.join(60)
    graves = Graves()
    how(peer, end, begin)
    same(process.exitcode, 0, "the process that ended:")
    print("status 0 graves", graves.most)
    sys.stdout.flush()
    # Its device may be gone, or its peer.
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "drop":
        drop(int(sys.argv[2]))
    else:
        main({"refused": refused, "stuck": stuck}[sys.argv[1]])

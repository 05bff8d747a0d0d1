# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: the driver's interface with its user-space library,
spoken by hand, so that it can be spoken wrongly.
"""
import ctypes
import mmap
import os
import struct

from harness import PAGE, node_of

# include/uapi/rdma/ib_user_verbs.h, enum ib_uverbs_write_cmds
GET_CONTEXT, QUERY_DEVICE, ALLOC_PD, DEALLOC_PD, CREATE_AH, DESTROY_AH, REG_MR, REREG_MR, DEREG_MR = 0, 1, 3, 4, 5, 8, 9, 11, 13
CREATE_CQ, RESIZE_CQ, DESTROY_CQ, CREATE_QP, MODIFY_QP, DESTROY_QP, ATTACH_MCAST, DETACH_MCAST = 18, 19, 20, 24, 26, 27, 30, 31
CREATE_SRQ = 32
# include/uapi/rdma/irdma-abi.h
MEMORY, QP_RINGS, CQ_RING = 0, 1, 2
RC, UD = 2, 4
INIT, ERR = 1, 6
IBV_REREG_MR_CHANGE_ACCESS = 4
IBV_QP_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_RATE_LIMIT = 1, 8, 16, 32, 1 << 25


class Context:
    """A device, opened once."""

    def __init__(self, name, open_it=True):
        self.name = name
        self.fd = os.open(node_of(name), os.O_RDWR | os.O_CLOEXEC)
        self.kept = []
        self.granted = None
        if open_it:
            self.get_context(struct.pack("<IB3xQ", 0, 5, 1), 80)

    def write(self, command, payload, out=0):
        header = struct.pack("<IHH", command, (8 + len(payload)) // 4, out // 4)
        os.write(self.fd, header + payload)

    def call(self, command, core, core_out, driver, driver_out, at=None):
        """Issues a command, returns the core's and the driver's part of the response, or has it written to an address."""
        room = ctypes.create_string_buffer(b"\xaa" * (core_out + driver_out), core_out + driver_out)
        self.write(command, struct.pack("<Q", at or ctypes.addressof(room)) + core + driver, len(room))
        return room.raw[:core_out], room.raw[core_out:]

    def extended(self, command, core, core_out, driver, driver_out):
        """As call, by the command's extended form."""
        room = ctypes.create_string_buffer(b"\xaa" * (core_out + driver_out), core_out + driver_out)
        header = struct.pack("<IHHQHHI", 1 << 31 | command, len(core) // 8, core_out // 8, ctypes.addressof(room),
                             len(driver) // 8, driver_out // 8, 0)
        os.write(self.fd, header + core + driver)
        return room.raw[:core_out], room.raw[core_out:]

    def query_device(self, driver=b"", driver_out=0):
        return self.extended(QUERY_DEVICE, bytes(8), 304, driver, driver_out)[1]

    def get_context(self, driver, driver_out):
        core, answer = self.call(GET_CONTEXT, b"", 8, driver, driver_out)
        os.close(struct.unpack("<II", core)[0])
        return answer

    def alloc_pd(self, driver=b"", driver_out=8):
        core, answer = self.call(ALLOC_PD, b"", 4, driver, driver_out)
        return struct.unpack("<I", core)[0], answer

    def dealloc_pd(self, pd):
        self.write(DEALLOC_PD, struct.pack("<I", pd))

    def memory(self, pages):
        memory = mmap.mmap(-1, pages * PAGE)
        self.kept.append(memory)
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def reg_mr(self, pd, start, length, driver):
        core, _ = self.call(REG_MR, struct.pack("<QQQII", start, length, start, pd, 1), 12, driver, 0)
        return struct.unpack("<III", core)[0]

    def rereg_mr(self, mr, pd, driver=b"", driver_out=0):
        """Registers a region anew with another right, to write."""
        core = struct.pack("<IIQQQII", mr, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0, pd, 1)
        return self.call(REREG_MR, core, 8, driver, driver_out)[1]

    def dereg_mr(self, mr):
        self.write(DEREG_MR, struct.pack("<I", mr))

    def reg_cq_ring(self, pd, start, pages):
        return self.reg_mr(pd, start, pages * PAGE, struct.pack("<HHHH", CQ_RING, pages, 0, 0))

    def cq_memory(self, pd, pages=1):
        """Registers a ring and a shadow area; both addresses and both handles."""
        ring, shadow = self.memory(pages), self.memory(1)
        return ring, shadow, self.reg_cq_ring(pd, ring, pages), self.reg_cq_ring(pd, shadow, 1)

    def create_cq(self, cqe, driver, driver_out=8):
        core, answer = self.call(CREATE_CQ, struct.pack("<QIIiI", 0, cqe, 0, -1, 0), 8, driver, driver_out)
        return struct.unpack("<II", core)[0], answer

    def resize_cq(self, cq, cqe, driver, driver_out=0):
        return self.call(RESIZE_CQ, struct.pack("<II", cq, cqe), 8, driver, driver_out)[1]

    def destroy_cq(self, cq):
        self.call(DESTROY_CQ, struct.pack("<II", cq, 0), 8, b"", 0)

    def new_cq(self, pd, pages=1, cqe=64):
        ring, shadow, _, _ = self.cq_memory(pd, pages)
        return self.create_cq(cqe, struct.pack("<QQ", ring, shadow))[0]

    def reg_qp_rings(self, pd, start, send, recv):
        return self.reg_mr(pd, start, (send + recv + 1) * PAGE, struct.pack("<HHHH", QP_RINGS, 0, recv, send))

    def qp_memory(self, pd, send=4, recv=1):
        """Registers rings and shadow area. The smallest send ring has 512 quanta, as some are reserved."""
        start = self.memory(send + recv + 1)
        return start, self.reg_qp_rings(pd, start, send, recv)

    def create_qp(self, pd, cq, start, kind=RC, send=8, recv=8, sge=1, recv_sge=None, inline=0, driver=None, driver_out=24,
                  at=None):
        """Makes a queue pair; `self.granted` is then what the core says of its sizes, in the order of the arguments."""
        recv_sge = sge if recv_sge is None else recv_sge
        core = struct.pack("<QIIIIIIIIIBBBB", 0, pd, cq, cq, 0, send, recv, sge, recv_sge, inline, 0, kind, 0, 0)
        driver = struct.pack("<QQQQ", start, 0, 0, 0) if driver is None else driver
        core, answer = self.call(CREATE_QP, core, 32, driver, driver_out, at)
        self.granted = struct.unpack("<8I", core)[2:7]
        return struct.unpack("<8I", core)[0], answer

    def destroy_qp(self, qp):
        self.call(DESTROY_QP, struct.pack("<II", qp, 0), 4, b"", 0)

    def modify_qp(self, qp, mask, state, driver=b"", room=0):
        """By the extended command, since the old one passes nothing on to the driver."""
        core = bytes(64) + struct.pack("<7I", qp, mask, 0, 0, 0, 0, 0)
        core += struct.pack("<HH13B3xII", 0, 0, state, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
        return self.extended(MODIFY_QP, core, 8, driver, room)[1]

    def create_ah(self, pd, driver=b"", room=8):
        """An address handle for the port itself."""
        with open(f"/sys/class/infiniband/{self.name}/ports/1/gids/0", encoding="ascii") as file:
            gid = bytes.fromhex(file.read().replace(":", ""))
        core = struct.pack("<QII", 0, pd, 0) + gid + struct.pack("<IBBBB", 0, 0, 64, 0, 0)
        core += struct.pack("<HBBBBBB", 0, 0, 0, 0, 1, 1, 0)
        core, answer = self.call(CREATE_AH, core, 4, driver, room)
        return struct.unpack("<I", core)[0], answer

    def destroy_ah(self, ah):
        self.write(DESTROY_AH, struct.pack("<I", ah))

    def mcast(self, command, qp, group):
        self.write(command, group + struct.pack("<IHH", qp, 0, 0))

    def close(self):
        os.close(self.fd)

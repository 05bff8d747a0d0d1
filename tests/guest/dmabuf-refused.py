#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: regions of DMA buffers that the device does not let
go of, in the ways given: when they go (dereg) or are taken back (revoke)."""
import os
import sys

import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.mr import DmaBufMR
from pyverbs.pd import PD

from harness import DEALLOC_STAG, PAGE, devices, fail_command, lend

with Context(name=devices()[0]) as context, PD(context) as pd:
    buffer, take_back = lend(16)
    region = DmaBufMR(pd, 16 * PAGE, e.IBV_ACCESS_LOCAL_WRITE, buffer, 0)
    fail_command(DEALLOC_STAG)
    if sys.argv[1] == "dereg":
        region.close()
    take_back()
    os.close(buffer)

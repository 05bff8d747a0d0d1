#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""In the virtual machine: two processes whose regions the device never answers
for. When the first one's time is over the device is to be reset, and neither
may be told that the device does not have its memory."""
import os
import sys
import time

import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD

from harness import PAGE, REG_MR, devices, fault, outcome


def process(delay):
    """Registers memory after a while; whether that ends as it has to."""
    context = Context(name=devices()[0])
    pd = PD(context)
    time.sleep(delay)
    seen = outcome(lambda: MR(pd, PAGE, e.IBV_ACCESS_LOCAL_WRITE))
    print(f"after {delay} s: {seen}", flush=True)
    # The device is about to go, with all that this process has.
    os._exit(seen != "ETIMEDOUT")


fault("cqp_command", REG_MR, "drop", times=2)
children = []
for wait in (1, 4):
    child = os.fork()
    if not child:
        process(wait)
    children.append(child)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))

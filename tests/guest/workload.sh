# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by the workloads of scripts/parity. They run in the virtual machine
# with no RDMA driver loaded, the driver to use as their only argument, and
# must ask the same of every driver, in the same order, each time.

set -eu
DRIVER=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/tap.sh
case $DRIVER in stock) MODULE=irdma ;; rust) MODULE=irdma_rs ;; *) exit 90 ;; esac

settled() { [ -z "$(ip -6 -o addr show tentative)" ] && [ "$(ip -6 -o addr show scope link | grep -c ': eth')" -ge 2 ]; }
active() { [ "$(cat /sys/class/infiniband/*/ports/1/state 2>/dev/null | grep -c ACTIVE)" = 2 ]; }
# Address tables are filled by workers.
with_gids() { [ "$(grep -Lx '0000:0000:0000:0000:0000:0000:0000:0000' /sys/class/infiniband/*/ports/1/gids/[01] 2>/dev/null | wc -l)" = 4 ]; }

# Whether a region is one block or a list must not depend on free memory.
echo never >/sys/kernel/mm/transparent_hugepage/enabled
# No RDMA agents: what they send depends on the time of day.
modprobe -r ib_umad rdma_ucm 2>/dev/null || true
modprobe -a ib_core ib_uverbs
await 20 settled

load() {
	if [ "$DRIVER" = stock ]; then modprobe irdma; else insmod irdma_rs.ko; fi
	await 20 active
	await 20 with_gids
}
unload() { rmmod "$MODULE"; }

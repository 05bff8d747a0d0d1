# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by what runs in the virtual machine with the repository as working
# folder: the RDMA driver, its ports and their addresses. $driver is stock or
# rust; the variables that are set here are for the one who sources it.
# shellcheck disable=SC2034
. tests/tap.sh

case $driver in
stock) module=irdma ;;
rust) module=irdma_rs ;;
*) echo "no driver '$driver'"; exit 90 ;;
esac
load() { if [ "$driver" = stock ]; then modprobe irdma; else insmod irdma_rs.ko; fi; }
# active N: as many ports of this driver are ACTIVE.
active() { [ "$(cat /sys/class/infiniband/irdma*/ports/1/state 2>/dev/null | grep -c ACTIVE)" = "$1" ]; }
control() { scripts/guest/emulator "$1"; }
# wire [FAULTS]: what the wire does to the frames of both ports from now on, by
# default nothing; the control socket's words.
wire() {
	local port
	for port in 0 1; do
		control "{\"cmd\":\"wire\",\"port\":$port${1:+,\"faults\":$1,\"seed\":$((port + 1))}}" >/dev/null || return
	done
}
# used TABLE: entries of a table of the Rust driver that are in use, on both ports.
used() { awk -v name="$1" '$1 == name { n += $2 } END { print n + 0 }' /sys/kernel/debug/irdma_rs/*/tables; }
# said PATTERN: how often the kernel has said it.
said() { dmesg | grep -c "$1"; }
# rebind AUXILIARY: takes the driver from a device and gives it back.
rebind() {
	local path
	path=$(readlink -f "/sys/bus/auxiliary/devices/$1/driver")
	echo "$1" >"$path/unbind" && echo "$1" >"$path/bind"
}

# The netdevs of the ports, by PCI address, and their RDMA devices.
find_nets() { mapfile -t nets < <(ls -d /sys/bus/pci/drivers/ice/*/net/* | sort | xargs -n 1 basename); }
rdma_of() { basename "$(dirname "$(dirname "$(dirname "$(ls -d /sys/class/infiniband/*/device/net/"$1")")")")"; }

# full ADDRESS: an IPv4 or IPv6 address as a GID is written.
full() {
	local a=$1 left right n out=
	if [[ $a != *:* ]]; then
		# shellcheck disable=SC2086
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${a//./ }
		return
	fi
	IFS=: read -ra left <<<"${a%%::*}"
	IFS=: read -ra right <<<"$([[ $a == *::* ]] && echo "${a##*::}")"
	for n in "${left[@]}"; do out+=$(printf ':%04x' "0x$n"); done
	for ((n = ${#left[@]} + ${#right[@]}; n < 8; n++)); do out+=:0000; done
	for n in "${right[@]}"; do out+=$(printf ':%04x' "0x$n"); done
	echo -n "${out#:}"
}
# gid DEVICE ADDRESS: the index of the address's RoCEv2 GID.
gid() {
	local want dir=/sys/class/infiniband/$1/ports/1 i
	want=$(full "$2")
	for ((i = 0; i < 32; i++)); do
		[ "$(cat "$dir/gids/$i" 2>/dev/null)" = "$want" ] &&
			[ "$(cat "$dir/gid_attrs/types/$i" 2>/dev/null)" = "RoCE v2" ] && { echo "$i"; return; }
	done
	return 1
}

# The other network namespace, so that frames between two ports of one machine
# really travel.
peer() { ip netns exec peer "$@"; }
peer_gid() { peer bash -c "$(declare -f full gid); gid $*"; }

# separate: puts the second port (see find_nets) into the namespace "peer": 10.0.1.1 and
# fd00:1::1 here reach 10.0.2.1 and fd00:2::1 there.
separate() {
	ip link set lo up
	ip netns add peer
	ip link set "${nets[1]}" netns peer
	peer ip link set lo up
	peer ip addr add 10.0.2.1/24 dev "${nets[1]}" 2>/dev/null
	ip addr add fd00:1::1/64 dev "${nets[0]}" nodad
	peer ip addr add fd00:2::1/64 dev "${nets[1]}" nodad
	peer ip link set "${nets[1]}" up
	ip route add 10.0.2.0/24 dev "${nets[0]}" src 10.0.1.1
	peer ip route add 10.0.1.0/24 dev "${nets[1]}" src 10.0.2.1
	ip -6 route add fd00:2::/64 dev "${nets[0]}" src fd00:1::1
	peer ip -6 route add fd00:1::/64 dev "${nets[1]}" src fd00:2::1
	await 20 ping -c 1 -W 1 -q 10.0.2.1 >/dev/null || not_ok "$driver: ping between the ports"
	await 20 ping -c 1 -W 1 -q fd00:2::1 >/dev/null || not_ok "$driver: ping between the ports, IPv6"
}
# have_gids DEVICE ADDRESS PEER_DEVICE PEER_ADDRESS
have_gids() { gid "$1" "$2" >/dev/null && peer_gid "$3" "$4" >/dev/null; }

listens() { [ -n "$(ss -Htln "sport = :$1")$(peer ss -Htln "sport = :$1")" ]; }
cm_listens() { rdma resource show cm_id | grep -q 'state LISTEN'; }
# pair SERVER CLIENT [SIGN]: runs both; sets the status of each, rs and rc. The
# client waits for SIGN: the server's TCP port or something that it says; without
# SIGN until someone listens for connections, or for three seconds.
pair() {
	local server limit=${LIMIT:-20}
	within "$limit" bash -c "$1" >/run/server.txt 2>&1 &
	server=$!
	case ${3-} in
	'') await 3 cm_listens || true ;;
	*[!0-9]*) await 15 grep -q "$3" /run/server.txt ;;
	*) await 8 listens "$3" ;;
	esac
	within "$limit" bash -c "$2" >/run/client.txt 2>&1
	rc=$?
	wait "$server"
	rs=$?
	((rc == 0 && rs == 0))
}
# both NAME SERVER CLIENT [SIGN]: ok if both succeed.
both() {
	local name=$1 rc rs
	shift
	pair "$@" && { ok "$driver: $name"; return; }
	not_ok "$driver: $name (client $rc, server $rs)"
	{ echo "client:"; tail -n 20 /run/client.txt; echo "server:"; tail -n 20 /run/server.txt; } | grep -v '^---' | note
	return 1
}

# crossed: both ports stay in this namespace, for users in the kernel that know
# no other one, and still frames between 10.0.1.1 and 10.0.2.1 really travel:
# the routing tables forget that these addresses are their own.
crossed() {
	local mac net
	find_nets
	ip link set lo up
	for net in "${nets[@]}"; do
		echo 0 >"/proc/sys/net/ipv4/conf/$net/rp_filter"
		echo 1 >"/proc/sys/net/ipv4/conf/$net/accept_local"
	done
	ip route add 10.0.2.1/32 dev "${nets[0]}" src 10.0.1.1
	ip route add 10.0.1.1/32 dev "${nets[1]}" src 10.0.2.1
	mac=$(cat "/sys/class/net/${nets[1]}/address")
	ip neigh replace 10.0.2.1 lladdr "$mac" dev "${nets[0]}" nud permanent
	mac=$(cat "/sys/class/net/${nets[0]}/address")
	ip neigh replace 10.0.1.1 lladdr "$mac" dev "${nets[1]}" nud permanent
	ip route del local 10.0.1.1 dev "${nets[0]}"
	ip route del local 10.0.2.1 dev "${nets[1]}"
}
# received DEVICE: packets that it took from the wire.
received() { rdma -j statistic show link "$1/1" | jq '.[0] | .ip4InPkts + .ip6InPkts'; }

# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by suites that run on the host: a machine for each driver, and what
# those who know the protocol say of the frames that travelled in it.
. tests/tap.sh
mkdir -p out

# machine NAME DRIVER [OPTION-OF-VM]... -- CMD...: runs CMD, which prints TAP
# lines, in a machine with the driver; leaves out/NAME-DRIVER.{log,pcap,console}.
# What the emulator must say of the stock driver, as $known_violations (a
# pattern) has it, is a skip with the reason $known_reason.
machine() {
	local driver=$2 base=out/$1-$2 status other
	shift 2
	scripts/vm --driver "$driver" --pcap "$base.pcap" --console "$base.console" --timeout "${TIMEOUT:-900}" "$@" 2>&1 |
		tee "$base.log"
	status=${PIPESTATUS[0]}
	((status)) || return 0
	failures=$((failures + 1))
	grep -q '^not ok' "$base.log" && return 1
	if [ "$driver" = stock ] && [ -n "${known_violations-}" ] && grep -q '^scripts/vm: the emulator saw' "$base.log" &&
		! grep -q '^scripts/vm: the kernel reported' "$base.log"; then
		other=$(grep -a '^{"kind":' "$base.log" | grep -vcE "$known_violations")
		if ((other == 0)); then
			failures=$((failures - 1))
			echo "ok - stock: the emulator has nothing to say # SKIP known: $known_reason"
			return 0
		fi
	fi
	echo "not ok - $driver: the machine ended cleanly (status $status)"
	return 1
}

# told REASON NAME DRIVER ...: as machine; what fails with the stock driver is
# told in full, and is one skip.
told() {
	local reason=$1 name=$2 driver=$3
	shift
	if [ "$driver" != stock ]; then
		machine "$@"
		return
	fi
	machine "$@" | sed -u 's/^not ok/# not ok/'
	((PIPESTATUS[0])) || return 0
	echo "ok - stock: all of $name # SKIP known: $reason"
	return 1
}

# shark PCAP OPTION...: tshark guesses what a payload might be, and random data
# looks like anything: it is told which protocols there are.
shark() {
	local pcap=$1
	shift
	scripts/toolbox run tshark -n -r "$pcap" \
		--only-protocols frame,eth,ethertype,vlan,ip,ipv6,udp,infiniband,arp,icmp,icmpv6,tcp,data "$@" 2>/dev/null
}

# right_frames LABEL PCAP LEAST: at least so many RoCEv2 frames, none malformed,
# ICRC and lengths right (of 5000 of them, if there are more).
right_frames() {
	local label=$1 pcap=$2 least=$3 frames bad
	if [ ! -s "$pcap" ]; then
		not_ok "$label: a capture is there"
		return
	fi
	frames=$(shark "$pcap" -Y 'udp.dstport == 4791 && infiniband.bth' | wc -l)
	bad=$(shark "$pcap" -Y '_ws.malformed' | grep -E ' RRoCE | ARP | ICMP' | head -n 5)
	if ((frames < least)); then
		not_ok "$label: tshark dissects the RoCEv2 frames (found $frames, wanted $least)"
	elif [ -n "$bad" ]; then
		not_ok "$label: tshark finds nothing malformed"
		note <<<"$bad"
	else
		ok "$label: tshark dissects $frames RoCEv2 frames and finds nothing malformed"
	fi
	check "$label: ICRC, lengths and padding of RoCEv2 frames (scapy)" \
		scripts/toolbox run python3 tests/roce-frames.py "$pcap" 5000
}

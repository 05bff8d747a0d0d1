# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Sourced by tests on both sides of the virtual machine: TAP lines.

failures=0

ok() { echo "ok - $*"; }
not_ok() { echo "not ok - $*"; failures=$((failures + 1)); }
skip() { echo "ok - $1 # SKIP $2"; }
note() { sed 's/^/# /'; }

# check NAME CMD...: ok if CMD succeeds; its output is shown only if not.
check() {
	local name=$1 out rc=0
	shift
	out=$("$@" 2>&1) || rc=$?
	if ((rc == 0)); then
		ok "$name"
	else
		not_ok "$name (status $rc)"
		printf '%s\n' "$out" | tail -n 25 | note
	fi
	return "$rc"
}

# refused NAME PATTERN CMD...: ok if CMD fails and says PATTERN in one line.
refused() {
	local name=$1 pattern=$2 out rc=0
	shift 2
	out=$("$@" 2>&1) || rc=$?
	if ((rc == 0)); then
		not_ok "$name: it succeeded"
	elif ! grep -qE "$pattern" <<<"$out"; then
		not_ok "$name: the message says nothing of /$pattern/"
		printf '%s\n' "$out" | tail -n 10 | note
	elif [ "$(grep -c . <<<"$out")" != 1 ]; then
		not_ok "$name: the message has $(grep -c . <<<"$out") lines, not one"
		printf '%s\n' "$out" | tail -n 10 | note
	else
		ok "$name"
	fi
}

# A kernel with sanitizers has five times as long for everything.
slow=1
[ "${IRDMA_KERNEL-}" != debug ] || slow=5

# within SECONDS CMD...: runs a program that has as long.
within() { timeout $(($1 * slow)) "${@:2}"; }

# await SECONDS CMD...: runs CMD ten times a second until it succeeds.
await() {
	local i limit=$(($1 * 10 * slow))
	shift
	for ((i = 0; i < limit; i++)); do "$@" && return; sleep 0.1; done
	return 1
}

finish() { ((failures == 0)); exit; }

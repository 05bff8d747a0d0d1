# shellcheck shell=bash
# Shared by the scripts of this folder: messages, progress, cache, host checks.
# SPDX-License-Identifier: GPL-2.0

set -euo pipefail

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${IRDMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/irdma_rs}

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
# die_log LOG WHAT: for failures that only the log explains.
die_log() {
	tail -n 25 "$1" | sed 's/^/    | /' >&2
	die "$2 (whole log: $1)"
}
no_network() { grep -qE 'Could not resolve|Could not connect|Unable to connect|Cannot initiate the connection|Connection (refused|timed out)|Network is unreachable|Temporary failure|[Cc]ould not resolve host|download of config.json failed|failed to (fetch|download)|Failed to fetch' "$1"; }

elapsed() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# step NAME LOG CMD...: runs CMD with its output in LOG and tells every ten
# seconds how long it has run and what it is at (the log's last line).
step() {
	local name=$1 log=$2 start=$SECONDS pid rc=0 last
	shift 2
	mkdir -p "$(dirname "$log")"
	say "[....] $name"
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	local tick=0
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.5
		tick=$((tick + 1))
		if ((tick % 20 == 0)); then
			last=$(tail -c 300 "$log" | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c1-90 || true)
			say "[$(elapsed $((SECONDS - start)))] $name: ${last:-waiting}"
		fi
	done
	wait "$pid" || rc=$?
	if ((rc != 0)); then
		say "[FAIL] $name after $(elapsed $((SECONDS - start)))"
		return "$rc"
	fi
	say "[ ok ] $name in $(elapsed $((SECONDS - start)))"
}

# hash_of FILE...: a short key of the files' contents.
hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# locked NAME CMD...: runs CMD alone among all callers that use this cache.
locked() {
	local name=$1
	shift
	mkdir -p "$CACHE"
	(
		if ! flock -n 9; then
			say "[....] waiting for another process that makes $name"
			flock 9
		fi
		"$@"
	) 9>"$CACHE/.$name.lock"
}

is_debian() { [ -e /etc/debian_version ] && command -v apt-get >/dev/null; }

# need COMMAND PACKAGE: makes sure that COMMAND exists on the host; installs
# PACKAGE where the caller is root on Debian, else says how to get it.
need() {
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" = 0 ] && is_debian; then
		if ! { step "installing $2 (for $1)" "$CACHE/log/apt-$2.log" apt_install "$2" && command -v "$1" >/dev/null; }; then
			die "$1 is missing and package $2 could not be installed: check the network, or run 'apt-get install $2'"
		fi
	else
		die "$1 is missing: install it (Debian package $2)"
	fi
}

apt_install() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get install -y --no-install-recommends "$1" ||
		{ apt-get update && apt-get install -y --no-install-recommends "$1"; }
}

# SPDX-License-Identifier: GPL-2.0
#
#   make                 build irdma_rs.ko for the running kernel
#   make KDIR=DIR        build it for the kernel that was built in DIR
#   make IRDMA_KUNIT=1   with the KUnit suites
#   make clippy          lint it
#   make fmt, fmt-check  format it, check the format
#   make rust-analyzer   write rust-project.json
#   make clean           remove what a build made
#
#   make demo            show the driver at work on an emulated E810
#   make test            run the whole ladder of tests
#   make test-long       the same with every round and size, for hours
#   make test-debug      our driver's part of it on a kernel with sanitizers
#   make kunit           run the KUnit suites
#
# The last five set up all that they need, on any host.

KDIR ?= /lib/modules/$(shell uname -r)/build
RUSTC ?= rustc
RUSTFMT ?= rustfmt
BINDGEN ?= bindgen

KBUILD = +$(MAKE) -C '$(KDIR)' M='$(CURDIR)'
RUST_FILES = $(shell find . \( -path ./emulator -o -path ./out -o -path ./.git \) -prune \
	-o -name '*.rs' ! -name '*_generated.rs' -print)

.PHONY: demo test test-long test-debug kunit module check clippy fmt fmt-check rust-analyzer clean

module: check
	$(KBUILD) modules

clippy: check
	$(KBUILD) CLIPPY=1 modules

# One line about the first thing that the build lacks. The kernel's Rust
# metadata can be read by the very compiler that wrote it only.
check:
	@die() { echo "error: $$*" >&2; exit 1; }; \
	config='$(KDIR)/include/config/auto.conf'; \
	value() { sed -n "s/^$$1=//p" "$$config" | tr -d '"'; }; \
	[ -d '$(KDIR)' ] || \
		die "no kernel build at $(KDIR): give one that has CONFIG_RUST=y with KDIR="; \
	[ -r "$$config" ] || \
		die "$(KDIR) is not a configured kernel build (no include/config/auto.conf): give one with KDIR="; \
	[ "$$(value CONFIG_RUST)" = y ] || \
		die "the kernel in $(KDIR) has no CONFIG_RUST: give one that has with KDIR="; \
	[ -e '$(KDIR)/rust/libkernel.rmeta' ] || \
		die "$(KDIR) has CONFIG_RUST but no rust/libkernel.rmeta: header packages don't do, give the whole build with KDIR="; \
	have=$$($(RUSTC) --version 2>/dev/null) || \
		die "no rustc: install '$$(value CONFIG_RUSTC_VERSION_TEXT)', which built the kernel in $(KDIR), or name it with RUSTC="; \
	[ "$$have" = "$$(value CONFIG_RUSTC_VERSION_TEXT)" ] || \
		die "'$$have' is not '$$(value CONFIG_RUSTC_VERSION_TEXT)', which built the kernel in $(KDIR): name that one with RUSTC="; \
	$(BINDGEN) --version >/dev/null 2>&1 || \
		die "no bindgen: install it (Debian package bindgen) or name it with BINDGEN="

fmt:
	$(RUSTFMT) --edition 2021 --config skip_children=true $(RUST_FILES)

fmt-check:
	$(RUSTFMT) --edition 2021 --check $(RUST_FILES)

rust-analyzer: check
	$(KBUILD) rust-analyzer

clean:
	@find . \( -path ./emulator -o -path ./.git \) -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' \
		-o -name '*.mod.c' -o -name '.*.cmd' -o -name '.*.d' -o -name '*_generated.rs' \
		-o -name modules.order -o -name Module.symvers -o -name rust-project.json \) -type f -exec rm -f {} +

demo:
	@scripts/demo

test:
	@scripts/test

test-debug:
	@IRDMA_KERNEL=debug DRIVERS=rust LOOPS=$${LOOPS:-3} SUITE_TIMEOUT=7200 scripts/test \
		30-kunit 50-rust 60-probe-faults 65-ways 67-alloc-faults 75-cases 80-users 97-faults

kunit:
	@scripts/test 30-kunit

test-long:
	@LONG=1 LOOPS=200 SEEDS=1000 SUITE_TIMEOUT=18000 scripts/test

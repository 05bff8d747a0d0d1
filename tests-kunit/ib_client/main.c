// SPDX-License-Identifier: GPL-2.0
/*
 * ib_client - loads, judges the RoCE devices that it finds, and says so.
 *
 * insmod returns 0 when all went well; the log then ends in
 * "ib_client: PASS", and /sys/module/ib_client/parameters/result says the
 * same.  Otherwise insmod fails with EIO and the log ends in
 * "ib_client: FAIL: reason".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ib_client.h"

#define IC_MAX_DEVICES	8

static char *devices = "";
module_param(devices, charp, 0444);
MODULE_PARM_DESC(devices, "Comma-separated device names (default: every RoCE device)");

static unsigned int need = 1;
module_param(need, uint, 0444);
MODULE_PARM_DESC(need, "Devices that must come up with an active port and an address (default 1)");

static unsigned int wait_ms = 15000;
module_param(wait_ms, uint, 0444);
MODULE_PARM_DESC(wait_ms, "How long to wait for them");

static unsigned int rounds = 1;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "How often the traffic runs (default 1; 0: table only)");

static bool more;
module_param(more, bool, 0444);
MODULE_PARM_DESC(more, "Also immediate data and RDMA READ");

static bool fastreg;
module_param(fastreg, bool, 0444);
MODULE_PARM_DESC(fastreg, "Give the peer keys from fast registration, not the global one");

static bool ipv6;
module_param(ipv6, bool, 0444);
MODULE_PARM_DESC(ipv6, "Connect over IPv6");

static bool bench;
module_param(bench, bool, 0444);
MODULE_PARM_DESC(bench, "Print what calls cost, and check nothing else");

static char *cases = "";
module_param(cases, charp, 0444);
MODULE_PARM_DESC(cases, "Comma-separated situations of tests/rows to try, and nothing else");

static unsigned int max_wr = 16384;
module_param(max_wr, uint, 0444);
MODULE_PARM_DESC(max_wr, "Most work requests that the table asks for (software devices allow a million)");

static char result[176] = "not run";
module_param_string(result, result, sizeof(result), 0444);
MODULE_PARM_DESC(result, "What came out");

/* Also keeps a device from going away while it is judged. */
static DEFINE_MUTEX(ic_mutex);
static struct ib_device *ic_devices[IC_MAX_DEVICES];

static bool ic_wanted(struct ib_device *dev)
{
	const char *name = dev_name(&dev->dev);
	size_t len = strlen(name);
	const char *at = devices;

	if (!rdma_protocol_roce(dev, rdma_start_port(dev)))
		return false;
	if (!*devices)
		return true;
	while (*at) {
		size_t part = strcspn(at, ",");

		if (part == len && !strncmp(at, name, len))
			return true;
		at += part;
		at += *at == ',';
	}
	return false;
}

static int ic_add(struct ib_device *dev)
{
	int i;

	if (!ic_wanted(dev))
		return -EOPNOTSUPP;

	guard(mutex)(&ic_mutex);
	for (i = 0; i < IC_MAX_DEVICES; i++) {
		if (!ic_devices[i]) {
			ic_devices[i] = dev;
			return 0;
		}
	}
	return -EOPNOTSUPP;
}

static void ic_remove(struct ib_device *dev, void *client_data)
{
	int i;

	guard(mutex)(&ic_mutex);
	for (i = 0; i < IC_MAX_DEVICES; i++) {
		if (ic_devices[i] == dev)
			ic_devices[i] = NULL;
	}
}

static struct ib_client ic_client = {
	.name = KBUILD_MODNAME,
	.add = ic_add,
	.remove = ic_remove,
};

/* With the mutex held: the devices that have an active port and a GID. */
static unsigned int ic_ready(struct ic_end *end, struct ib_device **ready)
{
	unsigned int n = 0;
	int i;

	for (i = 0; i < IC_MAX_DEVICES; i++) {
		if (!ic_devices[i])
			continue;
		ic_init_end(end, ic_devices[i]);
		if (ic_find_address(end, ipv6))
			continue;
		ic_close(end);
		ready[n++] = ic_devices[i];
	}
	return n;
}

static const char *ic_poll_name(enum ib_poll_context poll)
{
	switch (poll) {
	case IB_POLL_DIRECT:
		return "polled";
	case IB_POLL_SOFTIRQ:
		return "events, softirq";
	default:
		return "events, workqueue";
	}
}

static int ic_traffic(struct ic_end *a, struct ic_end *b,
		      const struct ic_options *opt)
{
	u64 begin, spent;
	int err;

	if (opt->fastreg) {
		err = ic_register(a) ?: ic_register(b);
		if (err)
			return err;
	}
	if (opt->bench)
		return ic_bench(a, b);
	begin = ktime_get_ns();
	err = ic_exchange(a, b, opt, begin) ?: ic_exchange(b, a, opt, ~begin);
	spent = ktime_get_ns() - begin;
	if (err)
		return err;
	pr_info("  %u bytes each way, equal at both ends, %llu us\n", IC_BYTES,
		div_u64(spent, NSEC_PER_USEC));

	/* By hand first: where flush completions fail, it ends by a timeout. */
	return ic_drain(b, true) ?: ic_drain(a, false);
}

static int ic_link(struct ic_end *a, struct ic_end *b, struct ib_device *da,
		   struct ib_device *db, enum ib_poll_context poll,
		   const struct ic_options *opt)
{
	int err;

	pr_info("%s to %s, %s\n", dev_name(&da->dev),
		da == db ? "itself" : dev_name(&db->dev), ic_poll_name(poll));
	ic_init_end(a, da);
	ic_init_end(b, db);

	err = ic_find_address(a, opt->ipv6) ?: ic_find_address(b, opt->ipv6);
	if (err)
		ic_fail("%s, %s: no address: %pe", a->name, b->name,
			ERR_PTR(err));
	err = err ?: ic_open(a, poll, false, opt) ?:
	      ic_open(b, poll, true, opt) ?: ic_connect(a, b) ?:
	      ic_traffic(a, b, opt);
	ic_close(a);
	ic_close(b);
	return err;
}

static void ic_judge(struct ib_device **ready, unsigned int n,
		     const struct ic_options *opt)
{
	static const enum ib_poll_context polls[] = {
		IB_POLL_DIRECT, IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE,
	};
	struct ic_end *ends __free(kfree) = kzalloc_objs(*ends, 2);
	unsigned int i, p, round;

	if (!ends) {
		ic_fail("out of memory");
		return;
	}
	if (*opt->cases) {
		ic_run_cases(&ends[0], &ends[1], ready[0], opt->cases);
		return;
	}
	if (opt->bench) {
		ic_link(&ends[0], &ends[1], ready[0], ready[0], IB_POLL_DIRECT,
			opt);
		return;
	}
	for (i = 0; i < n; i++) {
		if (ic_check_sizes(ready[i], opt))
			return;
	}
	for (round = 0; round < rounds; round++) {
		for (p = 0; p < ARRAY_SIZE(polls); p++) {
			if (ic_link(&ends[0], &ends[1], ready[0], ready[0],
				    polls[p], opt))
				return;
		}
		for (p = 0; n > 1 && p < ARRAY_SIZE(polls); p++) {
			if (ic_link(&ends[0], &ends[1], ready[0], ready[1],
				    polls[p], opt))
				return;
		}
	}
}

static void ic_run(const struct ic_options *opt)
{
	unsigned long limit = jiffies + msecs_to_jiffies(wait_ms);
	struct ib_device *ready[IC_MAX_DEVICES];
	struct ic_end *probe __free(kfree) = kzalloc_obj(*probe);
	unsigned int n;

	if (!probe) {
		ic_fail("out of memory");
		return;
	}
	for (;;) {
		scoped_guard(mutex, &ic_mutex) {
			n = ic_ready(probe, ready);
			if (n >= need && n) {
				ic_judge(ready, n, opt);
				return;
			}
		}
		if (time_after(jiffies, limit))
			break;
		msleep(50);
	}
	ic_fail("%u of %u devices with an active port and an address", n,
		max(need, 1u));
}

static int __init ic_init(void)
{
	const struct ic_options opt = {
		.more = more,
		.fastreg = fastreg,
		.bench = bench,
		.ipv6 = ipv6,
		.cases = cases,
		.max_wr = max_wr,
	};
	int err;

	ic_report_reset();
	err = ib_register_client(&ic_client);
	if (err) {
		ic_fail("ib_register_client: %pe", ERR_PTR(err));
	} else {
		ic_run(&opt);
		ib_unregister_client(&ic_client);
	}

	if (ic_failed()) {
		pr_err("FAIL: %s\n", ic_reason());
		return -EIO;
	}
	strscpy(result, "PASS");
	pr_info("PASS\n");
	return 0;
}
module_init(ic_init);

static void __exit ic_exit(void)
{
}
module_exit(ic_exit);

MODULE_DESCRIPTION("In-kernel RDMA user that checks the driver beneath it");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0
/*
 * The verdict: the first thing that went wrong is the reason of the failure.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/spinlock.h>

#include "ib_client.h"

static DEFINE_SPINLOCK(ic_lock);
static char ic_first[160];
static unsigned int ic_count;

/* May be called from a completion handler, in any context but NMI. */
void ic_fail(const char *fmt, ...)
{
	char text[sizeof(ic_first)];
	unsigned long flags;
	va_list args;
	bool print;

	va_start(args, fmt);
	vscnprintf(text, sizeof(text), fmt, args);
	va_end(args);

	spin_lock_irqsave(&ic_lock, flags);
	if (!ic_count)
		strscpy(ic_first, text);
	/* A broken link makes hundreds of errors; the first ones tell why. */
	print = ic_count++ < 20;
	spin_unlock_irqrestore(&ic_lock, flags);

	if (print)
		pr_err("wrong: %s\n", text);
}

bool ic_failed(void)
{
	return READ_ONCE(ic_count);
}

const char *ic_reason(void)
{
	return ic_first;
}

void ic_report_reset(void)
{
	ic_count = 0;
	ic_first[0] = '\0';
}

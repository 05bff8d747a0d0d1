// SPDX-License-Identifier: GPL-2.0
/*
 * What the driver's data path and object calls cost, in ticks of the time
 * stamp counter.  Under an emulator that counts instructions (QEMU's -icount
 * with shift 0, one CPU) a tick is an instruction; elsewhere the figures say
 * little.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmstat.h>
#include <asm/tsc.h>

#include "ib_client.h"

#define BENCH_RUNS	101
#define BENCH_OBJECTS	1000
#define BENCH_EDGE	100	/* objects averaged at each end of the row */
/* Objects whose memory is looked at: many where one is less than a page. */
#define BENCH_SOME	256
#define BENCH_SMALL	4096
#define BENCH_INLINE	48

static u64 samples[BENCH_RUNS];

static int bench_cmp(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 bench_median(void)
{
	sort(samples, BENCH_RUNS, sizeof(samples[0]), bench_cmp, NULL);
	return samples[BENCH_RUNS / 2];
}

static void bench_say(const char *what, const char *unit, u64 value)
{
	pr_info("bench %s %s %llu\n", what, unit, value);
}

/*
 * Calls that wait let the CPU go.  This thread takes it then, so that the
 * waiting can be told from the work: its run time is subtracted.
 */
static int bench_soak(void *unused)
{
	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop())
		schedule();
	return 0;
}

static struct task_struct *soaker;

struct bench_span {
	u64 ticks;
	u64 soaked;
};

static struct bench_span bench_begin(void)
{
	return (struct bench_span){
		.soaked = READ_ONCE(soaker->se.sum_exec_runtime),
		.ticks = rdtsc_ordered(),
	};
}

static u64 bench_end(struct bench_span begin)
{
	u64 ticks = rdtsc_ordered() - begin.ticks;
	u64 soaked = READ_ONCE(soaker->se.sum_exec_runtime) - begin.soaked;

	return ticks > soaked ? ticks - soaked : 0;
}

/* Completions of one CQ, taken by hand; the ends' handlers are not called. */
static int bench_take(struct ib_cq *cq, int n)
{
	struct ib_wc wc;
	int got, i;

	for (i = 0; i < 20000 && n; i++) {
		got = ib_poll_cq(cq, 1, &wc);
		if (got < 0)
			return got;
		if (!got) {
			usleep_range(20, 50);
			continue;
		}
		if (wc.status != IB_WC_SUCCESS) {
			ic_fail("bench: completion with '%s'",
				ib_wc_status_msg(wc.status));
			return -EIO;
		}
		n--;
	}
	if (n)
		ic_fail("bench: %d completions missing", n);
	return n ? -ETIMEDOUT : 0;
}

static u64 bench_nothing(void)
{
	unsigned long flags;
	u64 begin, end;

	local_irq_save(flags);
	begin = rdtsc_ordered();
	end = rdtsc_ordered();
	local_irq_restore(flags);
	return end - begin;
}

static int bench_post_recv(struct ic_end *b, u64 *ticks)
{
	const struct ib_recv_wr *bad;
	struct ib_sge sge = {
		.addr = b->rx.addr,
		.length = SZ_4K,
		.lkey = b->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	unsigned long flags;
	u64 begin;
	int err;

	local_irq_save(flags);
	begin = rdtsc_ordered();
	err = ib_post_recv(b->qp, &wr, &bad);
	*ticks = rdtsc_ordered() - begin;
	local_irq_restore(flags);
	return err;
}

static int bench_post_send(struct ic_end *a, struct ib_send_wr *wr, u64 *ticks)
{
	const struct ib_send_wr *bad;
	unsigned long flags;
	u64 begin;
	int err;

	local_irq_save(flags);
	begin = rdtsc_ordered();
	err = ib_post_send(a->qp, wr, &bad);
	*ticks = rdtsc_ordered() - begin;
	local_irq_restore(flags);
	return err;
}

/* SENDs of one form; @recv: what is looked at is the RECVs beneath them. */
static int bench_send(struct ic_end *a, struct ic_end *b, u32 nsge,
		      bool in_line, bool recv)
{
	u64 spare, nothing = bench_nothing();
	struct ib_sge sge[4];
	struct ib_send_wr wr = {
		.sg_list = sge,
		.num_sge = nsge,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | (in_line ? IB_SEND_INLINE : 0),
	};
	int err, i;

	for (i = 0; i < nsge; i++) {
		sge[i].addr = in_line ? (uintptr_t)a->tx.va : a->tx.addr;
		sge[i].addr += i * SZ_4K;
		sge[i].length = in_line ? BENCH_INLINE : 256;
		sge[i].lkey = a->pd->local_dma_lkey;
	}
	for (i = 0; i < BENCH_RUNS; i++) {
		u64 *sample = &samples[i];

		err = bench_post_recv(b, recv ? sample : &spare) ?:
		      bench_post_send(a, &wr, recv ? &spare : sample) ?:
		      bench_take(a->scq, 1) ?: bench_take(b->scq, 1);
		if (err)
			return err;
		*sample -= min(*sample, nothing);
	}
	return 0;
}

/* A full window of completions, taken in one call. */
static int bench_poll(struct ic_end *a, struct ic_end *b)
{
	struct ib_wc *wc __free(kfree) = kmalloc_objs(*wc, IC_WINDOW);
	struct ib_sge sge = {
		.addr = a->tx.addr,
		.length = 256,
		.lkey = a->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	unsigned long flags;
	u64 begin, spare;
	int err, i, n;

	if (!wc)
		return -ENOMEM;
	for (i = 0; i < BENCH_RUNS; i++) {
		for (n = 0; n < IC_WINDOW; n++) {
			err = bench_post_recv(b, &spare) ?:
			      bench_post_send(a, &wr, &spare);
			if (err)
				return err;
		}
		/* The peer has all of it, so our completions are there too. */
		err = bench_take(b->scq, IC_WINDOW);
		if (err)
			return err;
		usleep_range(50, 100);

		local_irq_save(flags);
		begin = rdtsc_ordered();
		n = ib_poll_cq(a->scq, IC_WINDOW, wc);
		samples[i] = rdtsc_ordered() - begin;
		local_irq_restore(flags);
		if (n <= 0) {
			ic_fail("bench: %d completions at once", n);
			return -EIO;
		}
		samples[i] = div_u64(samples[i], n);
		err = bench_take(a->scq, IC_WINDOW - n);
		if (err)
			return err;
	}
	return 0;
}

static int bench_reg_mr(struct ic_end *a)
{
	struct ib_reg_wr reg = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	struct ib_send_wr inv = {
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
	};
	u64 spare, nothing = bench_nothing();
	struct ib_mr *mr;
	int err = 0, i;

	mr = ib_alloc_mr(a->pd, IB_MR_TYPE_MEM_REG, IC_BYTES / SZ_4K);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	for (i = 0; i < BENCH_RUNS && !err; i++) {
		ib_update_fast_reg_key(mr, i);
		err = ib_map_mr_sg(mr, &a->tx.sg, 1, NULL, SZ_4K);
		if (err != 1) {
			err = err < 0 ? err : -EINVAL;
			break;
		}
		reg.mr = mr;
		reg.key = mr->rkey;
		inv.ex.invalidate_rkey = mr->rkey;
		err = bench_post_send(a, &reg.wr, &samples[i]) ?:
		      bench_take(a->scq, 1) ?:
		      bench_post_send(a, &inv, &spare) ?:
		      bench_take(a->scq, 1);
		samples[i] -= min(samples[i], nothing);
	}
	ib_dereg_mr(mr);
	return err;
}

static struct ib_qp *bench_create_qp(struct ic_end *a)
{
	struct ib_qp_init_attr init = {
		.send_cq = a->scq,
		.recv_cq = a->scq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 2,
			.max_recv_sge = 2,
		},
	};

	return ib_create_qp(a->pd, &init);
}

static int bench_qp(struct ic_end *a)
{
	int i;

	for (i = 0; i < BENCH_RUNS; i++) {
		struct bench_span begin = bench_begin();
		struct ib_qp *qp = bench_create_qp(a);

		if (IS_ERR(qp))
			return PTR_ERR(qp);
		ib_destroy_qp(qp);
		samples[i] = bench_end(begin);
	}
	return 0;
}

/* Many QPs at a time: the last must not cost more than the first. */
static int bench_many(struct ic_end *a)
{
	struct ib_qp **qps __free(kfree) = kzalloc_objs(*qps, BENCH_OBJECTS);
	u64 created[2] = {}, destroyed[2] = {};
	int err = 0, n, i;

	if (!qps)
		return -ENOMEM;
	for (n = 0; n < BENCH_OBJECTS; n++) {
		struct bench_span begin = bench_begin();
		u64 ticks;

		qps[n] = bench_create_qp(a);
		ticks = bench_end(begin);
		if (IS_ERR(qps[n])) {
			err = PTR_ERR(qps[n]);
			ic_fail("bench: QP %d of %d: %pe", n, BENCH_OBJECTS,
				qps[n]);
			break;
		}
		if (n < BENCH_EDGE)
			created[0] += ticks;
		else if (n >= BENCH_OBJECTS - BENCH_EDGE)
			created[1] += ticks;
	}
	for (i = 0; i < n; i++) {
		struct bench_span begin = bench_begin();
		u64 ticks;

		ib_destroy_qp(qps[i]);
		ticks = bench_end(begin);
		if (i < BENCH_EDGE)
			destroyed[0] += ticks;
		else if (i >= BENCH_OBJECTS - BENCH_EDGE)
			destroyed[1] += ticks;
	}
	if (err)
		return err;
	bench_say("create_qp_first_100", "instructions",
		  div_u64(created[0], BENCH_EDGE));
	bench_say("create_qp_last_100", "instructions",
		  div_u64(created[1], BENCH_EDGE));
	bench_say("destroy_qp_first_100", "instructions",
		  div_u64(destroyed[0], BENCH_EDGE));
	bench_say("destroy_qp_last_100", "instructions",
		  div_u64(destroyed[1], BENCH_EDGE));
	return 0;
}

enum bench_kind { BENCH_QP, BENCH_CQ, BENCH_MR };

/*
 * Pages in use, for what an object is made of.  A region is pieces of slabs;
 * the memory of its page list grows by megabytes, is the same for each driver
 * and must not matter, and neither must the free pages that a CPU keeps.
 */
static long bench_pages(enum bench_kind kind)
{
	/* Counts that other work has under way come to rest. */
	msleep(200);
	if (kind == BENCH_MR)
		return global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B);
	return -(long)global_zone_page_state(NR_FREE_PAGES);
}

static void *bench_make(struct ic_end *a, enum bench_kind kind)
{
	struct ib_cq_init_attr attr = { .cqe = 64 };

	switch (kind) {
	case BENCH_QP:
		return bench_create_qp(a);
	case BENCH_CQ:
		return ib_create_cq(a->dev, NULL, NULL, NULL, &attr);
	case BENCH_MR:
		return ib_alloc_mr(a->pd, IB_MR_TYPE_MEM_REG, 64);
	}
	return ERR_PTR(-EINVAL);
}

static void bench_unmake(void *object, enum bench_kind kind)
{
	switch (kind) {
	case BENCH_QP:
		ib_destroy_qp(object);
		break;
	case BENCH_CQ:
		ib_destroy_cq(object);
		break;
	case BENCH_MR:
		ib_dereg_mr(object);
		break;
	}
}

/* Kernel memory of an object, from pages that are gone while many live. */
static int bench_memory(struct ic_end *a, enum bench_kind kind, int some,
			const char *what)
{
	void **objects __free(kvfree) = kvzalloc_objs(*objects, 2 * some);
	long before = 0, after;
	int err = 0, n;

	if (!objects)
		return -ENOMEM;
	for (n = 0; n < 2 * some; n++) {
		/*
		 * The first fill what others have left in slabs, caches and
		 * tables that stay.
		 */
		if (n == some)
			before = bench_pages(kind);
		objects[n] = bench_make(a, kind);
		if (IS_ERR(objects[n])) {
			err = PTR_ERR(objects[n]);
			ic_fail("bench: %s %d: %pe", what, n, objects[n]);
			break;
		}
	}
	after = bench_pages(kind);
	while (n--)
		bench_unmake(objects[n], kind);
	if (!err)
		bench_say(what, "bytes", max(after - before, 0l) * PAGE_SIZE /
			  some);
	return err;
}

static int bench_row(const char *what, int err)
{
	if (err) {
		ic_fail("bench %s: %pe", what, ERR_PTR(err));
		return err;
	}
	bench_say(what, "instructions", bench_median());
	return 0;
}

/* Between two connected QPs of one device. */
int ic_bench(struct ic_end *a, struct ic_end *b)
{
	int err;

	soaker = kthread_run(bench_soak, NULL, "ib_client_soak");
	if (IS_ERR(soaker))
		return PTR_ERR(soaker);

	err = bench_row("post_send_1sge", bench_send(a, b, 1, false, false)) ?:
	      bench_row("post_send_4sge", bench_send(a, b, 4, false, false)) ?:
	      bench_row("post_send_inline", bench_send(a, b, 1, true, false)) ?:
	      bench_row("post_recv", bench_send(a, b, 1, false, true)) ?:
	      bench_row("poll_cq", bench_poll(a, b)) ?:
	      bench_row("reg_mr_wr", bench_reg_mr(a)) ?:
	      /*
	       * What was freed stays at hand, unseen: memory goes first, and
	       * of it the smallest.
	       */
	      bench_memory(a, BENCH_MR, BENCH_SMALL, "memory_mr") ?:
	      bench_memory(a, BENCH_QP, BENCH_SOME, "memory_qp") ?:
	      bench_memory(a, BENCH_CQ, BENCH_SOME, "memory_cq") ?:
	      bench_row("create_destroy_qp", bench_qp(a)) ?:
	      bench_many(a);
	if (err)
		ic_fail("bench: %pe", ERR_PTR(err));
	kthread_stop(soaker);
	return err;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Situations that only a user in the kernel meets. Some have ids of tests/rows;
 * the parameter "cases" names those that run.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/etherdevice.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ib_client.h"

/* Pages of a fast registration that needs more than one page of a page list. */
#define IC_PAGES	1024

/* Regions that break the pool of page lists into pieces, and their pages. */
#define IC_PIECES	2048
#define IC_PIECE	512

struct ic_case {
	const char *row;
	const char *name;
	int (*run)(struct ic_end *a, struct ic_end *b);
};

static const struct ic_options ic_case_options = { .fastreg = true };

static int ic_case_open(struct ic_end *a, struct ic_end *b)
{
	return ic_open(a, IB_POLL_DIRECT, false, &ic_case_options) ?:
	       ic_open(b, IB_POLL_DIRECT, false, &ic_case_options);
}

/* Posts one WR that writes @len bytes at @offset of the buffer to the peer. */
static int ic_post_write(struct ic_end *end, u32 offset, u32 len, int flags,
			 u64 remote, u32 rkey)
{
	struct ic_slot *slot = &end->send[0];
	struct ib_sge sge = {
		.addr = end->tx.addr + offset,
		.length = len,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &slot->cqe,
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED | flags,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.remote_addr = remote,
		.rkey = rkey,
	};
	const struct ib_send_wr *bad = NULL;
	int err;

	if (flags & IB_SEND_INLINE)
		sge.addr = (uintptr_t)end->tx.va + offset;
	ic_arm(slot, end, IB_WC_RDMA_WRITE, len);
	atomic_inc(&end->pending);
	err = ib_post_send(end->qp, &wr.wr, &bad);
	if (err) {
		atomic_dec(&end->pending);
		if (bad != &wr.wr)
			ic_fail("%s: another WR was called bad", end->name);
	}
	return err;
}

/* As ic_post_write(), and waits for its completion. */
static int ic_write(struct ic_end *end, u32 offset, u32 len, int flags,
		    u64 remote, u32 rkey)
{
	return ic_post_write(end, offset, len, flags, remote, rkey) ?:
	       ic_wait(end, "RDMA WRITE");
}

/* Inline data up to what was granted, and one byte more. */
static int ic_case_inline(struct ic_end *a, struct ic_end *b)
{
	static const u32 sizes[] = { 0, 1, 8, 9, 48, 96, 101 };
	u8 *sent, *got;
	int err, i;

	err = ic_case_open(a, b) ?: ic_connect(a, b) ?: ic_register(b);
	if (err)
		return err;
	if (a->cap.max_inline_data != 101) {
		ic_fail("%u bytes of inline data were granted",
			a->cap.max_inline_data);
		return -EPROTO;
	}
	sent = a->tx.va;
	got = b->rx.va;
	for (i = 0; i < 128; i++)
		sent[i] = i + 1;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(got, 0, 128);
		err = ic_write(a, 0, sizes[i], IB_SEND_INLINE, b->rx.iova,
			       b->rx.rkey);
		if (err) {
			ic_fail("%u bytes inline: %d", sizes[i], err);
			return err;
		}
		if (memcmp(sent, got, sizes[i]) || got[sizes[i]]) {
			ic_fail("%u bytes inline are not what came", sizes[i]);
			return -EBADMSG;
		}
	}
	memset(got, 0, 128);
	for (i = 102; i <= 1024; i *= 2) {
		err = ic_write(a, 0, i, IB_SEND_INLINE, b->rx.iova, b->rx.rkey);
		if (err != -EINVAL) {
			ic_fail("%d bytes inline: %d, not EINVAL", i, err);
			return err ?: -EPROTO;
		}
	}
	/* What was refused has left nothing in the ring. */
	err = ic_write(a, 0, 64, 0, b->rx.iova, b->rx.rkey);
	if (!err && (memcmp(sent, got, 64) || got[64]))
		ic_fail("what came is not what was posted last");
	return err;
}

struct ic_pages {
	struct page *page[IC_PAGES];
	struct scatterlist sg[IC_PAGES];
	int mapped;
};

static void ic_pages_free(struct ic_end *end, struct ic_pages *pages)
{
	int i;

	if (pages->mapped)
		ib_dma_unmap_sg(end->dev, pages->sg, IC_PAGES,
				DMA_BIDIRECTIONAL);
	for (i = 0; i < IC_PAGES; i++) {
		if (pages->page[i])
			__free_page(pages->page[i]);
	}
	kvfree(pages);
}

/* Pages that do not follow each other: every other one is held by nobody. */
static struct ic_pages *ic_pages_alloc(struct ic_end *end)
{
	struct ic_pages *pages = kvzalloc_obj(*pages);
	int i;

	if (!pages)
		return NULL;
	sg_init_table(pages->sg, IC_PAGES);
	for (i = 0; i < IC_PAGES; i++) {
		/* From both ends, so that the order is nobody's. */
		int at = i & 1 ? IC_PAGES - 1 - i / 2 : i / 2;

		pages->page[at] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pages->page[at])
			goto fail;
	}
	for (i = 0; i < IC_PAGES; i++)
		sg_set_page(&pages->sg[i], pages->page[i], PAGE_SIZE, 0);
	pages->mapped = ib_dma_map_sg(end->dev, pages->sg, IC_PAGES,
				      DMA_BIDIRECTIONAL);
	if (pages->mapped)
		return pages;
fail:
	ic_pages_free(end, pages);
	return NULL;
}

/* Has @mr stand for @pages, and lets the peer write to some of them. */
static int ic_use_pages(struct ic_end *a, struct ic_end *b, struct ib_mr *mr,
			struct ic_pages *pages, u8 seed)
{
	static const int some[] = { 0, 1, 511, 512, 513, 1000, IC_PAGES - 1 };
	struct ic_slot *slot = &b->send[0];
	struct ib_reg_wr wr = {
		.wr.wr_cqe = &slot->cqe,
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	const struct ib_send_wr *bad;
	int err, i;

	err = ib_map_mr_sg(mr, pages->sg, pages->mapped, NULL, PAGE_SIZE);
	if (err != pages->mapped) {
		ic_fail("ib_map_mr_sg: %d of %d", err, pages->mapped);
		return err < 0 ? err : -EINVAL;
	}
	ib_update_fast_reg_key(mr, seed);
	wr.mr = mr;
	wr.key = mr->rkey;
	ic_arm(slot, b, IB_WC_REG_MR, 0);
	atomic_inc(&b->pending);
	err = ib_post_send(b->qp, &wr.wr, &bad) ?: ic_wait(b, "REG_MR");
	if (err)
		return err;

	for (i = 0; i < ARRAY_SIZE(some); i++) {
		u8 *got = page_address(pages->page[some[i]]);
		u8 *sent = a->tx.va;

		memset(sent, seed + i, 64);
		err = ic_write(a, 0, 64, 0, mr->iova + some[i] * PAGE_SIZE + 8,
			       mr->rkey);
		if (err)
			return err;
		if (memcmp(got + 8, sent, 64)) {
			ic_fail("page %d of %d is not where it was written to",
				some[i], IC_PAGES);
			return -EBADMSG;
		}
	}
	return 0;
}

/*
 * A fast registration with more pages than a page of a page list holds, when
 * no long run of entries is left. It may be refused for want of memory, but if
 * it is granted it must work; and it is granted when there is room again.
 */
static int ic_case_pool(struct ic_end *a, struct ic_end *b)
{
	struct ib_mr **pieces = kvzalloc_objs(*pieces, IC_PIECES);
	struct ic_pages *pages = NULL;
	struct ib_mr *mr;
	int err, n, i;

	if (!pieces)
		return -ENOMEM;
	err = ic_case_open(a, b) ?: ic_connect(a, b);
	if (err)
		goto out;
	pages = ic_pages_alloc(b);
	if (!pages) {
		err = -ENOMEM;
		goto out;
	}
	for (n = 0; n < IC_PIECES; n++) {
		mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, IC_PIECE);
		if (IS_ERR(mr)) {
			if (PTR_ERR(mr) != -ENOMEM)
				ic_fail("region %d: %pe, not ENOMEM", n, mr);
			break;
		}
		pieces[n] = mr;
	}
	for (i = 0; i < n; i += 2) {
		ib_dereg_mr(pieces[i]);
		pieces[i] = NULL;
	}
	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, IC_PAGES);
	pr_info("  %d regions of %d pages, every other one taken away: one of %d pages is %s\n",
		n, IC_PIECE, IC_PAGES, IS_ERR(mr) ? "refused" : "granted");
	if (!IS_ERR(mr)) {
		err = ic_use_pages(a, b, mr, pages, 1);
		ib_dereg_mr(mr);
	} else if (PTR_ERR(mr) != -ENOMEM) {
		ic_fail("a region of %d pages: %pe, not ENOMEM", IC_PAGES, mr);
	}
	for (i = 0; i < IC_PIECES; i++) {
		if (pieces[i])
			ib_dereg_mr(pieces[i]);
	}
	if (err)
		goto out;
	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, IC_PAGES);
	if (IS_ERR(mr)) {
		ic_fail("a region of %d pages after that: %pe", IC_PAGES, mr);
		err = PTR_ERR(mr);
		goto out;
	}
	err = ic_use_pages(a, b, mr, pages, 101);
	ib_dereg_mr(mr);
out:
	if (pages)
		ic_pages_free(b, pages);
	kvfree(pieces);
	return err;
}

static int ic_state(struct ic_end *end)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr now = {};
	int err;

	err = ib_query_qp(end->qp, &now, IB_QP_STATE, &init);
	return err ?: now.qp_state;
}

/*
 * RESET of a new QP changes nothing; that of one in ERR begins a new life, or
 * is refused and changes nothing.
 */
static int ic_case_reset(struct ic_end *a, struct ic_end *b)
{
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	int err;

	err = ic_case_open(a, b);
	if (err)
		return err;
	err = ib_modify_qp(a->qp, &reset, IB_QP_STATE);
	if (err || ic_state(a) != IB_QPS_RESET) {
		ic_fail("RESET of a new QP: %d, state %d", err, ic_state(a));
		return err ?: -EPROTO;
	}
	err = ic_connect(a, b) ?: ic_register(b);
	if (err)
		return err;
	err = ic_write(a, 0, 64, 0, b->rx.iova, b->rx.rkey) ?: ic_to_error(a);
	if (err)
		return err;
	err = ib_modify_qp(a->qp, &reset, IB_QP_STATE);
	pr_info("  RESET of a QP in ERR: %d\n", err);
	if (err) {
		if (err != -EOPNOTSUPP || ic_state(a) != IB_QPS_ERR)
			ic_fail("RESET of a QP in ERR: %d, state %d", err,
				ic_state(a));
		return 0;
	}
	if (ic_state(a) != IB_QPS_RESET)
		ic_fail("state %d after RESET", ic_state(a));
	/* Both ends begin anew. */
	err = ic_to_error(b) ?: ib_modify_qp(b->qp, &reset, IB_QP_STATE) ?:
	      ic_connect(a, b);
	if (err)
		ic_fail("after RESET: %d", err);
	return err ?: ic_write(a, 0, 64, 0, b->rx.iova, b->rx.rkey);
}

static int ic_to_state(struct ic_end *end, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int err;

	err = ib_modify_qp(end->qp, &attr, IB_QP_STATE);
	if (err || ic_state(end) != state) {
		ic_fail("state %d: %d, and it is in state %d", state, err,
			ic_state(end));
		return err ?: -EPROTO;
	}
	return 0;
}

/* What is posted in SQD is sent from RTS on, without another post. */
static int ic_case_sqd(struct ic_end *a, struct ic_end *b)
{
	u8 *sent, *got;
	int err, i;

	err = ic_case_open(a, b) ?: ic_connect(a, b) ?: ic_register(b);
	if (err)
		return err;
	sent = a->tx.va;
	got = b->rx.va;

	for (i = 1; !err && i <= 3; i++) {
		memset(sent, i, 64);
		err = ic_write(a, 0, 64, 0, b->rx.iova, b->rx.rkey) ?:
		      ic_to_state(a, IB_QPS_SQD) ?:
		      ic_to_state(a, IB_QPS_SQD);
		if (err)
			return err;
		memset(got, 0, 64);
		err = ic_post_write(a, 0, 64, 0, b->rx.iova, b->rx.rkey);
		if (err)
			return err;
		msleep(100);
		if (ib_process_cq_direct(a->scq, -1) || got[0])
			ic_fail("what was posted in SQD was sent");
		err = ic_to_state(a, IB_QPS_RTS) ?: ic_wait(a, "RDMA WRITE");
		if (!err && memcmp(sent, got, 64))
			ic_fail("what came is not what was posted in SQD");
	}
	return err;
}

static void ic_try_alloc_mr(struct ic_end *end, u32 pages, int wanted)
{
	struct ib_mr *mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, pages);
	int err = PTR_ERR_OR_ZERO(mr);

	if (err != wanted)
		ic_fail("%u pages: %d, not %d", pages, err, wanted);
	if (!err)
		ib_dereg_mr(mr);
}

/* Pages of a fast registration, up to the limit and no more. */
static int ic_case_alloc_mr(struct ic_end *a, struct ic_end *b)
{
	u32 max;
	int err;

	err = ic_case_open(a, b);
	if (err)
		return err;
	max = a->dev->attrs.max_fast_reg_page_list_len;
	ic_try_alloc_mr(a, 0, -EINVAL);
	ic_try_alloc_mr(a, 1, 0);
	ic_try_alloc_mr(a, max, 0);
	ic_try_alloc_mr(a, max + 1, -EINVAL);
	ic_try_alloc_mr(a, 1u << 31, -EINVAL);
	ic_try_alloc_mr(a, U32_MAX, -EINVAL);
	return 0;
}

/* Who destroys a QP without draining it hears no more of its work requests. */
static int ic_case_destroy(struct ic_end *a, struct ic_end *b)
{
	int err, i;

	err = ic_open(a, IB_POLL_SOFTIRQ, false, &ic_case_options) ?:
	      ic_open(b, IB_POLL_SOFTIRQ, false, &ic_case_options) ?:
	      ic_connect(a, b);
	for (i = 0; !err && i < IC_LEFTOVER; i++) {
		ic_arm(&b->recv[i], b, IB_WC_RECV, 0);
		b->recv[i].status = IB_WC_WR_FLUSH_ERR;
		err = ic_post_recv(b, &b->recv[i], i, 1, 1);
	}
	if (err)
		return err;
	err = ib_destroy_qp(b->qp);
	if (err)
		return err;
	b->qp = NULL;
	for (i = 0; i < IC_LEFTOVER; i++) {
		if (b->recv[i].seen)
			ic_fail("RECV %d completed while its QP was destroyed",
				i);
	}
	return 0;
}

/* Draining a QP of datagrams, which has its marker posted to it as well. */
static int ic_case_drain(struct ic_end *a, struct ic_end *b)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = 1,
	};
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD,
		.cap.max_send_wr = 4,
		.cap.max_recv_wr = 4,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
	};
	const struct ib_send_wr *bad;
	struct ib_rdma_wr marker = { .wr.opcode = IB_WR_RDMA_WRITE };
	struct ib_qp *qp;
	int err;

	err = ic_case_open(a, b);
	if (err)
		return err;
	init.send_cq = a->scq;
	init.recv_cq = a->scq;
	qp = ib_create_qp(a->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
				      IB_QP_PORT | IB_QP_QKEY);
	if (!err && !ib_post_send(qp, &marker.wr, &bad))
		ic_fail("an RDMA WRITE of datagrams was taken");
	/* Says so in the kernel's log if it fails. */
	ib_drain_qp(qp);
	ib_destroy_qp(qp);
	return err;
}

/* Registrations and their ends, in one post each. */
#define IC_REUSES	500

/* What is posted again and again, and what must never be. */
struct ic_reuse {
	struct ib_cq *cq;
	struct ib_send_wr end;	/* the last of the chain */
	struct ib_cqe end_cqe;
	struct ib_rdma_wr other;	/* put behind it when it is done */
	struct ib_cqe other_cqe;
	unsigned int ended;
	unsigned int others;
	enum ib_wc_status status;
};

/* Once the last of the chain is done its memory is the user's again. */
static int ic_reuse_poll(void *data)
{
	struct ic_reuse *reuse = data;
	struct ib_wc wc;

	while (!kthread_should_stop()) {
		if (ib_poll_cq(reuse->cq, 1, &wc) <= 0) {
			cond_resched();
			continue;
		}
		if (wc.status != IB_WC_SUCCESS)
			WRITE_ONCE(reuse->status, wc.status);
		if (wc.wr_cqe == &reuse->other_cqe)
			WRITE_ONCE(reuse->others, reuse->others + 1);
		if (wc.wr_cqe != &reuse->end_cqe)
			continue;
		WRITE_ONCE(reuse->end.next, &reuse->other.wr);
		smp_store_release(&reuse->ended, reuse->ended + 1);
	}
	return 0;
}

/* A chain ends where it ended when it was posted. */
static int ic_case_reuse(struct ic_end *a, struct ic_end *b)
{
	struct ic_reuse reuse = {
		.end.wr_cqe = &reuse.end_cqe,
		.end.opcode = IB_WR_LOCAL_INV,
		.end.send_flags = IB_SEND_SIGNALED,
		.other.wr.wr_cqe = &reuse.other_cqe,
		.other.wr.opcode = IB_WR_RDMA_WRITE,
		.other.wr.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_reg_wr reg = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.next = &reuse.end,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	struct task_struct *poller;
	unsigned long limit;
	unsigned int i;
	int err;

	err = ic_case_open(a, b) ?: ic_connect(a, b);
	if (err)
		return err;
	a->tx.mr = ib_alloc_mr(a->pd, IB_MR_TYPE_MEM_REG, IC_BYTES / SZ_4K);
	if (IS_ERR(a->tx.mr)) {
		err = PTR_ERR(a->tx.mr);
		a->tx.mr = NULL;
		return err;
	}
	err = ib_map_mr_sg(a->tx.mr, &a->tx.sg, 1, NULL, SZ_4K);
	if (err != 1)
		return err < 0 ? err : -EINVAL;
	reg.mr = a->tx.mr;
	reg.key = a->tx.mr->rkey;
	reuse.end.ex.invalidate_rkey = a->tx.mr->rkey;
	reuse.cq = a->scq;
	poller = kthread_run(ic_reuse_poll, &reuse, "ib_client_reuse");
	if (IS_ERR(poller))
		return PTR_ERR(poller);

	err = 0;
	limit = jiffies + msecs_to_jiffies(IC_TIMEOUT_MS);
	for (i = 1; !err && i <= IC_REUSES && !reuse.status; i++) {
		WRITE_ONCE(reuse.end.next, NULL);
		err = ib_post_send(a->qp, &reg.wr, NULL);
		while (!err && smp_load_acquire(&reuse.ended) < i &&
		       !READ_ONCE(reuse.status)) {
			if (time_after(jiffies, limit))
				err = -ETIMEDOUT;
			cond_resched();
		}
	}
	kthread_stop(poller);
	if (reuse.status)
		ic_fail("after %u chains: completion with '%s'", i - 1,
			ib_wc_status_msg(reuse.status));
	else if (reuse.others)
		ic_fail("what was put behind one of %d chains was posted, %u times",
			IC_REUSES, reuse.others);
	else if (err)
		ic_fail("after %u of %d chains: %d", i - 1, IC_REUSES, err);
	return err;
}

static struct ib_ah *ic_ah_to_self(struct ic_end *end)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };

	rdma_ah_set_port_num(&attr, end->port);
	rdma_ah_set_grh(&attr, (union ib_gid *)&end->gid->gid, 0,
			end->gid->index, 17, 0);
	ether_addr_copy(attr.roce.dmac, end->mac);
	return rdma_create_ah(end->pd, &attr, 0);
}

/*
 * A handle that is made without sleeping, and whose making ends a moment after
 * nobody waits for it any more: whoever loads this has told the emulator so.
 */
static int ic_case_late(struct ic_end *a, struct ic_end *b)
{
	struct ib_ah *ah;
	u64 begin, spent;
	int err;

	err = ic_case_open(a, b);
	if (err)
		return err;
	begin = ktime_get_ns();
	ah = ic_ah_to_self(a);
	spent = div_u64(ktime_get_ns() - begin, NSEC_PER_MSEC);
	if (!IS_ERR(ah)) {
		ic_fail("it was made, after %llu ms", spent);
		rdma_destroy_ah(ah, 0);
		return -EPROTO;
	}
	if (ah != ERR_PTR(-ETIMEDOUT) || spent < 4900) {
		ic_fail("%pe after %llu ms, not ETIMEDOUT after 5 s", ah, spent);
		return -EPROTO;
	}
	msleep(3000);
	/* A device that is going to be reset for its silence takes no more. */
	ah = ic_ah_to_self(a);
	pr_info("  another one after the late one: %s\n",
		IS_ERR(ah) ? "refused" : "made");
	if (!IS_ERR(ah))
		rdma_destroy_ah(ah, 0);
	else if (ah != ERR_PTR(-EBUSY))
		ic_fail("another one: %pe", ah);
	return 0;
}

static const struct ic_case ic_cases[] = {
	{ "Q-29", "inline data up to the limit and beyond", ic_case_inline },
	{ "M-18", "a fast registration when page lists are in pieces",
	  ic_case_pool },
	{ "Q-11", "RESET of a QP, new or in ERR", ic_case_reset },
	{ "SQD", "what is posted in SQD is sent from RTS on", ic_case_sqd },
	{ "alloc_mr", "pages of a fast registration up to the limit",
	  ic_case_alloc_mr },
	{ "A-04", "the making of an address handle comes late", ic_case_late },
	{ "destroy", "a QP is destroyed with RECVs outstanding", ic_case_destroy },
	{ "drain", "a QP of datagrams is drained", ic_case_drain },
	{ "reuse", "a chain whose memory is used again as soon as it is done",
	  ic_case_reuse },
};

/* Runs the cases whose rows are in @rows, comma-separated. */
void ic_run_cases(struct ic_end *a, struct ic_end *b, struct ib_device *dev,
		  const char *rows)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ic_cases); i++) {
		const struct ic_case *one = &ic_cases[i];
		int err;

		if (!strstr(rows, one->row))
			continue;
		ic_report_reset();
		ic_init_end(a, dev);
		ic_init_end(b, dev);
		err = ic_find_address(a, false) ?: ic_find_address(b, false) ?:
		      one->run(a, b);
		ic_close(a);
		ic_close(b);
		if (err && !ic_failed())
			ic_fail("error %d", err);
		pr_info("case %s: %s: in the kernel: %s%s%s\n",
			ic_failed() ? "not ok" : "ok", one->row, one->name,
			ic_failed() ? ": " : "", ic_reason());
	}
	ic_report_reset();
}

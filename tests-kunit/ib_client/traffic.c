// SPDX-License-Identifier: GPL-2.0
/*
 * Data over a link, and what the completions must say about it.
 *
 * A window of messages is posted, its completions are awaited, then comes the
 * next window.  Sizes, number of fragments, inline or not, and which work
 * requests are signalled all go round with different periods, so that every
 * size meets every form.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include "ib_client.h"

static const u32 ic_sizes[] = {
	1, 8, 9, 39, 40, 64, 100, 101, 102, 255, 256, 1000, 1024, 1025, 4096,
	4097, 8191, 16384, 33333, 65536, 3, 70001, 2048,
};

enum ic_form {
	IC_SEND,
	IC_WRITE,
	IC_SEND_IMM,
	IC_WRITE_IMM,
	IC_READ,
};

static const enum ic_form ic_plain[] = { IC_SEND, IC_WRITE };
static const enum ic_form ic_more[] = {
	IC_SEND, IC_WRITE, IC_SEND_IMM, IC_WRITE_IMM, IC_READ,
};

/* One message: what goes where, how. */
struct ic_message {
	enum ic_form form;
	u32 offset;
	u32 len;
	u32 nsge;
	bool in_line;
	bool signal;
};

static void ic_check_received(const struct ic_slot *slot,
			      const struct ib_wc *wc)
{
	const char *name = slot->end->name;

	if (wc->byte_len != slot->len)
		ic_fail("%s: %u bytes received, not %u", name, wc->byte_len,
			slot->len);
	if (slot->with_imm != !!(wc->wc_flags & IB_WC_WITH_IMM))
		ic_fail("%s: immediate data %s", name,
			slot->with_imm ? "missing" : "out of nowhere");
	else if (slot->with_imm && be32_to_cpu(wc->ex.imm_data) != slot->imm)
		ic_fail("%s: immediate data %#x, not %#x", name,
			be32_to_cpu(wc->ex.imm_data), slot->imm);
}

static void ic_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ic_slot *slot = container_of(wc->wr_cqe, struct ic_slot, cqe);
	struct ic_end *end = slot->end;

	if (slot->seen++)
		ic_fail("%s: a work request completed %u times", end->name,
			slot->seen);
	else if (wc->status != slot->status)
		ic_fail("%s: completion with '%s' (vendor %#x), not '%s'",
			end->name, ib_wc_status_msg(wc->status),
			wc->vendor_err, ib_wc_status_msg(slot->status));
	else if (wc->status == IB_WC_SUCCESS) {
		if (slot->silent)
			ic_fail("%s: a WR that was not signalled completed",
				end->name);
		if (wc->opcode != slot->opcode)
			ic_fail("%s: completion of opcode %d, not %d",
				end->name, wc->opcode, slot->opcode);
		if (slot->opcode & IB_WC_RECV)
			ic_check_received(slot, wc);
		if (wc->qp != end->qp)
			ic_fail("%s: completion names another QP", end->name);
	}
	if (!slot->silent) {
		atomic_dec(&end->pending);
		wake_up(&end->wait);
	}
}

void ic_arm(struct ic_slot *slot, struct ic_end *end, enum ib_wc_opcode opcode,
	    u32 len)
{
	memset(slot, 0, sizeof(*slot));
	slot->cqe.done = ic_done;
	slot->end = end;
	slot->status = IB_WC_SUCCESS;
	slot->opcode = opcode;
	slot->len = len;
}

/* Until every awaited completion of @end has come. */
int ic_wait(struct ic_end *end, const char *what)
{
	unsigned long limit = msecs_to_jiffies(IC_TIMEOUT_MS);
	unsigned long end_time = jiffies + limit;

	if (end->poll != IB_POLL_DIRECT) {
		wait_event_timeout(end->wait,
				   atomic_read(&end->pending) <= 0, limit);
	} else {
		while (atomic_read(&end->pending) > 0) {
			ib_process_cq_direct(end->scq, IC_WINDOW);
			if (end->rcq != end->scq)
				ib_process_cq_direct(end->rcq, IC_WINDOW);
			if (time_after(jiffies, end_time))
				break;
			usleep_range(10, 50);
		}
	}
	if (!atomic_read(&end->pending))
		return ic_failed() ? -EPROTO : 0;
	ic_fail("%s: %s: %d completions missing", end->name, what,
		atomic_read(&end->pending));
	return -ETIMEDOUT;
}

/* Cuts [addr, addr + len) into @n pieces of unlike sizes. */
static void ic_cut(struct ib_sge *sge, u64 addr, u32 len, u32 n, u32 lkey)
{
	u32 piece, i;

	for (i = 0; i < n; i++) {
		piece = i == n - 1 ? len : max(len / (n - i + 1), 1u);
		sge[i].addr = addr;
		sge[i].length = piece;
		sge[i].lkey = lkey;
		addr += piece;
		len -= piece;
	}
}

int ic_post_recv(struct ic_end *end, struct ic_slot *slot, u32 offset, u32 len,
		 u32 nsge)
{
	const struct ib_recv_wr *bad;
	struct ib_sge sge[IC_MAX_SGE];
	struct ib_recv_wr wr = {
		.wr_cqe = &slot->cqe,
		.sg_list = sge,
		.num_sge = nsge,
	};
	int err;

	ic_cut(sge, end->rx.addr + offset, len, nsge, end->pd->local_dma_lkey);
	atomic_inc(&end->pending);
	err = ib_post_recv(end->qp, &wr, &bad);
	if (err) {
		atomic_dec(&end->pending);
		ic_fail("%s: ib_post_recv: %pe", end->name, ERR_PTR(err));
	}
	return err;
}

/* The RECV that @msg will consume at the far end, if it consumes one. */
static int ic_expect(struct ic_end *to, struct ic_slot *slot,
		     const struct ic_message *msg)
{
	switch (msg->form) {
	case IC_SEND:
	case IC_SEND_IMM:
		ic_arm(slot, to, IB_WC_RECV, msg->len);
		slot->with_imm = msg->form == IC_SEND_IMM;
		break;
	case IC_WRITE_IMM:
		ic_arm(slot, to, IB_WC_RECV_RDMA_WITH_IMM, msg->len);
		slot->with_imm = true;
		break;
	default:
		return 0;
	}
	slot->imm = ~msg->offset;
	return ic_post_recv(to, slot, msg->offset, msg->len,
			    min(msg->nsge, to->cap.max_recv_sge));
}

static enum ib_wc_opcode ic_fill_wr(struct ib_rdma_wr *wr,
				    const struct ic_message *msg,
				    const struct ic_end *to)
{
	wr->wr.ex.imm_data = cpu_to_be32(~msg->offset);
	wr->remote_addr = to->rx.iova + msg->offset;
	wr->rkey = to->rx.rkey;

	switch (msg->form) {
	case IC_SEND:
		wr->wr.opcode = IB_WR_SEND;
		return IB_WC_SEND;
	case IC_SEND_IMM:
		wr->wr.opcode = IB_WR_SEND_WITH_IMM;
		return IB_WC_SEND;
	case IC_WRITE:
		wr->wr.opcode = IB_WR_RDMA_WRITE;
		return IB_WC_RDMA_WRITE;
	case IC_WRITE_IMM:
		wr->wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		return IB_WC_RDMA_WRITE;
	case IC_READ:
		break;
	}
	wr->wr.opcode = IB_WR_RDMA_READ;
	return IB_WC_RDMA_READ;
}

/*
 * Posts @n messages as one chain.  A READ runs the other way: @to fetches what
 * @from holds, so that the data ends where it would with a SEND.  Chains hold
 * READs only or none.
 */
static int ic_post_window(struct ic_end *from, struct ic_end *to,
			  const struct ic_message *msgs, u32 n)
{
	static struct ib_rdma_wr wrs[IC_WINDOW];
	static struct ib_sge sges[IC_WINDOW][IC_MAX_SGE];
	bool read = msgs[0].form == IC_READ;
	struct ic_end *poster = read ? to : from;
	struct ic_buf *local = read ? &to->rx : &from->tx;
	const struct ib_send_wr *bad;
	u32 i;
	int err;

	memset(wrs, 0, sizeof(wrs));
	for (i = 0; i < n; i++) {
		const struct ic_message *msg = &msgs[i];
		struct ic_slot *slot = &poster->send[i];
		struct ib_rdma_wr *wr = &wrs[i];
		enum ib_wc_opcode opcode;
		u64 addr = local->addr;

		opcode = ic_fill_wr(wr, msg, to);
		if (read) {
			wr->remote_addr = from->tx.iova + msg->offset;
			wr->rkey = from->tx.rkey;
		}
		ic_arm(slot, poster, opcode, msg->len);
		slot->silent = !msg->signal;

		/* The CPU copies inline data, from its own address. */
		if (msg->in_line)
			addr = (uintptr_t)local->va;
		ic_cut(sges[i], addr + msg->offset, msg->len, msg->nsge,
		       poster->pd->local_dma_lkey);
		wr->wr.wr_cqe = &slot->cqe;
		wr->wr.sg_list = sges[i];
		wr->wr.num_sge = msg->nsge;
		wr->wr.send_flags = (msg->signal ? IB_SEND_SIGNALED : 0) |
				    (msg->in_line ? IB_SEND_INLINE : 0);
		wr->wr.next = i + 1 < n ? &wrs[i + 1].wr : NULL;
		if (msg->signal)
			atomic_inc(&poster->pending);
	}

	err = ib_post_send(poster->qp, &wrs[0].wr, &bad);
	if (err)
		ic_fail("%s: ib_post_send of %u: %pe", poster->name, n,
			ERR_PTR(err));
	return err;
}

/* Message @i of a stream that stands at @offset. */
static struct ic_message ic_next(const struct ic_options *opt, u32 i,
				 u32 offset, const struct ic_end *from,
				 const struct ic_end *to)
{
	struct ic_message msg = { .offset = offset };
	u32 window = i / IC_WINDOW;

	msg.len = min_t(u32, ic_sizes[i % ARRAY_SIZE(ic_sizes)],
			IC_BYTES - offset);
	if (opt->more) {
		msg.form = ic_more[i % ARRAY_SIZE(ic_more)];
		/* Every fourth window is READs, the others have none. */
		if (window % 4 == 3)
			msg.form = IC_READ;
		else if (msg.form == IC_READ)
			msg.form = IC_WRITE;
	} else {
		msg.form = ic_plain[i % ARRAY_SIZE(ic_plain)];
	}
	msg.nsge = 1 + i % min3(from->cap.max_send_sge, to->cap.max_send_sge,
				(u32)IC_MAX_SGE);
	if (msg.form == IC_READ)
		msg.nsge = min_t(u32, msg.nsge, to->dev->attrs.max_sge_rd);
	msg.nsge = min(msg.nsge, msg.len);
	msg.in_line = msg.form != IC_READ && i % 4 < 3 &&
		      msg.len <= from->cap.max_inline_data;
	msg.signal = i % 3 == 0;
	return msg;
}

/*
 * A message of no bytes and no fragment: once it has been received, all that
 * was written before it is in place.
 */
static int ic_finish(struct ic_end *from, struct ic_end *to)
{
	struct ic_slot *slot = &from->send[IC_WINDOW];
	const struct ib_send_wr *bad;
	struct ib_send_wr wr = {
		.wr_cqe = &slot->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int err;

	ic_arm(&to->recv[IC_WINDOW], to, IB_WC_RECV, 0);
	err = ic_post_recv(to, &to->recv[IC_WINDOW], 0, 1, 1);
	if (err)
		return err;

	ic_arm(slot, from, IB_WC_SEND, 0);
	atomic_inc(&from->pending);
	err = ib_post_send(from->qp, &wr, &bad);
	if (err) {
		ic_fail("%s: ib_post_send of nothing: %pe", from->name,
			ERR_PTR(err));
		return err;
	}
	return ic_wait(from, "last SEND") ?: ic_wait(to, "last RECV");
}

static int ic_compare(struct ic_end *from, struct ic_end *to)
{
	const u8 *sent = from->tx.va, *got = to->rx.va;
	size_t i;

	if (!memcmp(sent, got, IC_BYTES))
		return 0;
	for (i = 0; sent[i] == got[i]; i++)
		;
	ic_fail("%s -> %s: data differ at byte %zu: %#x, not %#x", from->name,
		to->name, i, got[i], sent[i]);
	return -EBADMSG;
}

/* IC_BYTES from one end to the other, compared. */
int ic_exchange(struct ic_end *from, struct ic_end *to,
		const struct ic_options *opt, u64 seed)
{
	static struct ic_message msgs[IC_WINDOW];
	struct rnd_state rnd;
	u32 offset = 0, i = 0;
	int err;

	prandom_seed_state(&rnd, seed);
	prandom_bytes_state(&rnd, from->tx.va, IC_BYTES);
	memset(to->rx.va, 0, IC_BYTES);
	ib_dma_sync_single_for_device(from->dev, from->tx.addr, IC_BYTES,
				      DMA_BIDIRECTIONAL);
	ib_dma_sync_single_for_device(to->dev, to->rx.addr, IC_BYTES,
				      DMA_BIDIRECTIONAL);

	while (offset < IC_BYTES) {
		u32 n = 0;

		while (n < IC_WINDOW && offset < IC_BYTES) {
			msgs[n] = ic_next(opt, i++, offset, from, to);
			offset += msgs[n].len;
			err = ic_expect(to, &to->recv[n], &msgs[n]);
			if (err)
				return err;
			n++;
		}
		msgs[n - 1].signal = true;

		err = ic_post_window(from, to, msgs, n) ?:
		      ic_wait(from, "send") ?: ic_wait(to, "receive");
		if (err)
			return err;
	}
	err = ic_finish(from, to);
	if (err)
		return err;

	ib_dma_sync_single_for_cpu(from->dev, from->tx.addr, IC_BYTES,
				   DMA_BIDIRECTIONAL);
	ib_dma_sync_single_for_cpu(to->dev, to->rx.addr, IC_BYTES,
				   DMA_BIDIRECTIONAL);
	return ic_compare(from, to);
}

static int ic_register_one(struct ic_end *end, struct ic_buf *buf)
{
	struct ic_slot *slot = &end->send[0];
	const struct ib_send_wr *bad;
	struct ib_reg_wr wr = {
		.wr.wr_cqe = &slot->cqe,
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			  IB_ACCESS_REMOTE_READ,
	};
	struct ib_mr *mr;
	int err;

	mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, IC_BYTES / SZ_4K);
	if (IS_ERR(mr)) {
		ic_fail("%s: ib_alloc_mr: %pe", end->name, mr);
		return PTR_ERR(mr);
	}
	buf->mr = mr;
	err = ib_map_mr_sg(mr, &buf->sg, 1, NULL, SZ_4K);
	if (err != 1) {
		ic_fail("%s: ib_map_mr_sg: %d", end->name, err);
		return err < 0 ? err : -EINVAL;
	}
	ib_update_fast_reg_key(mr, 0x5a);
	wr.mr = mr;
	wr.key = mr->rkey;

	ic_arm(slot, end, IB_WC_REG_MR, 0);
	atomic_inc(&end->pending);
	err = ib_post_send(end->qp, &wr.wr, &bad);
	if (err) {
		ic_fail("%s: REG_MR: %pe", end->name, ERR_PTR(err));
		return err;
	}
	buf->iova = mr->iova;
	buf->rkey = mr->rkey;
	return ic_wait(end, "REG_MR");
}

/* Keys for the peer from fast registration, after the QP has come to RTS. */
int ic_register(struct ic_end *end)
{
	return ic_register_one(end, &end->rx) ?: ic_register_one(end, &end->tx);
}

/*
 * Takes a QP with RECVs outstanding out of use.  By hand: to the error state,
 * where each RECV must come back flushed.  In both cases ib_drain_qp() follows
 * with its own markers.
 */
int ic_drain(struct ic_end *end, bool by_hand)
{
	int err, i;

	for (i = 0; i < IC_LEFTOVER; i++) {
		ic_arm(&end->recv[i], end, IB_WC_RECV, 0);
		end->recv[i].status = IB_WC_WR_FLUSH_ERR;
		err = ic_post_recv(end, &end->recv[i], i, 1, 1);
		if (err)
			return err;
	}
	if (by_hand) {
		err = ic_to_error(end) ?: ic_wait(end, "flush");
		if (err)
			return err;
	}
	ib_drain_qp(end->qp);
	return ic_wait(end, "drain");
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A connection made by hand: addresses from the GID table, objects, and the
 * walk INIT, RTR, RTS with no connection manager in between.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "ib_client.h"

void ic_init_end(struct ic_end *end, struct ib_device *dev)
{
	memset(end, 0, sizeof(*end));
	end->dev = dev;
	end->name = dev_name(&dev->dev);
	end->port = rdma_start_port(dev);
}

/*
 * The first RoCEv2 GID of the wanted family; an address that somebody assigned
 * is better than the link-local one, which every interface has.
 */
int ic_find_address(struct ic_end *end, bool ipv6)
{
	const struct ib_gid_attr *found = NULL;
	struct ib_port_attr port;
	int err, i;

	err = ib_query_port(end->dev, end->port, &port);
	if (err)
		return err;
	if (port.state != IB_PORT_ACTIVE)
		return -EAGAIN;
	end->mtu = port.active_mtu;

	for (i = 0; i < port.gid_tbl_len; i++) {
		const struct ib_gid_attr *gid;
		const struct in6_addr *addr;

		gid = rdma_get_gid_attr(end->dev, end->port, i);
		if (IS_ERR(gid))
			continue;
		addr = (const struct in6_addr *)gid->gid.raw;
		if (gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped(addr) == !ipv6) {
			bool local = ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL;

			if (!found || !local) {
				if (found)
					rdma_put_gid_attr(found);
				found = gid;
				if (!local)
					break;
				continue;
			}
		}
		rdma_put_gid_attr(gid);
	}
	if (!found)
		return -EADDRNOTAVAIL;

	err = rdma_read_gid_l2_fields(found, NULL, end->mac);
	if (err) {
		rdma_put_gid_attr(found);
		return err;
	}
	end->gid = found;
	return 0;
}

static int ic_buf_alloc(struct ic_end *end, struct ic_buf *buf)
{
	buf->va = alloc_pages_exact(IC_BYTES, GFP_KERNEL | __GFP_ZERO);
	if (!buf->va)
		return -ENOMEM;
	sg_init_one(&buf->sg, buf->va, IC_BYTES);
	if (ib_dma_map_sg(end->dev, &buf->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	buf->mapped = true;
	buf->addr = sg_dma_address(&buf->sg);
	buf->iova = buf->addr;
	buf->rkey = end->pd->unsafe_global_rkey;
	return 0;
}

static void ic_buf_free(struct ic_end *end, struct ic_buf *buf)
{
	if (buf->mr)
		ib_dereg_mr(buf->mr);
	if (buf->mapped)
		ib_dma_unmap_sg(end->dev, &buf->sg, 1, DMA_BIDIRECTIONAL);
	if (buf->va)
		free_pages_exact(buf->va, IC_BYTES);
	memset(buf, 0, sizeof(*buf));
}

static void ic_qp_event(struct ib_event *event, void *context)
{
	struct ic_end *end = context;

	/* Nothing here makes an event but a fault. */
	ic_fail("%s: event %s", end->name, ib_event_msg(event->event));
}

static int ic_create_qp(struct ic_end *end)
{
	struct ib_qp_init_attr init = {
		.event_handler = ic_qp_event,
		.qp_context = end,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			/* Over the window: the drain posts a marker. */
			.max_send_wr = IC_WINDOW + 2,
			.max_recv_wr = IC_WINDOW + 2,
			.max_send_sge = min(IC_MAX_SGE,
					    end->dev->attrs.max_send_sge),
			.max_recv_sge = min(IC_MAX_SGE,
					    end->dev->attrs.max_recv_sge),
			.max_inline_data = 101,
		},
	};
	struct ib_qp *qp;

	qp = ib_create_qp(end->pd, &init);
	if (IS_ERR(qp)) {
		/* A device may have less room for inline data, or none. */
		init.cap.max_inline_data = 0;
		qp = ib_create_qp(end->pd, &init);
	}
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	end->qp = qp;
	end->cap = init.cap;
	return 0;
}

/* What was made stays in @end also on failure; ic_close() takes it back. */
int ic_open(struct ic_end *end, enum ib_poll_context poll, bool share_cq,
	    const struct ic_options *opt)
{
	struct ib_device *dev = end->dev;
	int vector = 0;
	int err;

	init_waitqueue_head(&end->wait);
	atomic_set(&end->pending, 0);
	end->poll = poll;
	end->psn = get_random_u32() & 0xffffff;

	end->pd = ib_alloc_pd(dev, opt->fastreg ? 0 :
			      IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(end->pd)) {
		err = PTR_ERR(end->pd);
		end->pd = NULL;
		ic_fail("%s: ib_alloc_pd: %pe", end->name, ERR_PTR(err));
		return err;
	}

	end->scq = ib_alloc_cq(dev, end, 3 * IC_WINDOW, vector, poll);
	if (IS_ERR(end->scq)) {
		err = PTR_ERR(end->scq);
		end->scq = NULL;
		ic_fail("%s: ib_alloc_cq: %pe", end->name, ERR_PTR(err));
		return err;
	}
	if (share_cq) {
		end->rcq = end->scq;
	} else {
		vector = 1 % dev->num_comp_vectors;
		end->rcq = ib_alloc_cq(dev, end, 2 * IC_WINDOW, vector, poll);
		if (IS_ERR(end->rcq)) {
			err = PTR_ERR(end->rcq);
			end->rcq = NULL;
			ic_fail("%s: ib_alloc_cq: %pe", end->name,
				ERR_PTR(err));
			return err;
		}
	}

	err = ic_create_qp(end);
	if (err) {
		ic_fail("%s: ib_create_qp: %pe", end->name, ERR_PTR(err));
		return err;
	}

	err = ic_buf_alloc(end, &end->tx);
	if (!err)
		err = ic_buf_alloc(end, &end->rx);
	if (err)
		ic_fail("%s: buffers: %pe", end->name, ERR_PTR(err));
	return err;
}

static int ic_modify(struct ic_end *end, struct ib_qp_attr *attr, int mask,
		     const char *state)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr now = {};
	int err;

	err = ib_modify_qp(end->qp, attr, mask | IB_QP_STATE);
	if (err) {
		ic_fail("%s: modify QP %u to %s: %pe", end->name,
			end->qp->qp_num, state, ERR_PTR(err));
		return err;
	}
	err = ib_query_qp(end->qp, &now, IB_QP_STATE, &init);
	if (err || now.qp_state != attr->qp_state) {
		ic_fail("%s: QP %u says state %d after it went to %s (%d)",
			end->name, end->qp->qp_num, now.qp_state, state, err);
		return err ?: -EPROTO;
	}
	return 0;
}

static int ic_to_init(struct ic_end *end)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = end->port,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE |
				   IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
	};

	return ic_modify(end, &attr, IB_QP_PKEY_INDEX | IB_QP_PORT |
			 IB_QP_ACCESS_FLAGS, "INIT");
}

static int ic_to_rtr(struct ic_end *end, const struct ic_end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = min(end->mtu, peer->mtu),
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,	/* 0.64 ms */
	};
	struct rdma_ah_attr *ah = &attr.ah_attr;

	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, end->port);
	rdma_ah_set_grh(ah, (union ib_gid *)&peer->gid->gid, 0,
			end->gid->index, 64, 0);
	ether_addr_copy(ah->roce.dmac, peer->mac);

	return ic_modify(end, &attr, IB_QP_AV | IB_QP_PATH_MTU |
			 IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, "RTR");
}

static int ic_to_rts(struct ic_end *end)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = end->psn,
		.timeout = 14,		/* 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,		/* for ever */
		.max_rd_atomic = 4,
	};

	return ic_modify(end, &attr, IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			 IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			 IB_QP_MAX_QP_RD_ATOMIC, "RTS");
}

int ic_to_error(struct ic_end *end)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ic_modify(end, &attr, 0, "ERR");
}

/* A handle for datagrams to the peer, with leave to sleep and without. */
static int ic_check_ah(struct ic_end *end, const struct ic_end *peer)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
		struct rdma_ah_attr now = {};
		struct ib_ah *ah;
		int err;

		rdma_ah_set_port_num(&attr, end->port);
		rdma_ah_set_grh(&attr, (union ib_gid *)&peer->gid->gid, 0,
				end->gid->index, 17, 0x28);
		ether_addr_copy(attr.roce.dmac, peer->mac);
		ah = rdma_create_ah(end->pd, &attr,
				    i ? RDMA_CREATE_AH_SLEEPABLE : 0);
		if (IS_ERR(ah)) {
			ic_fail("%s: rdma_create_ah: %pe", end->name, ah);
			return PTR_ERR(ah);
		}
		err = rdma_query_ah(ah, &now);
		if (err == -EOPNOTSUPP) {
			err = 0;
		} else if (err || now.grh.hop_limit != 17 ||
			   now.grh.traffic_class != 0x28 ||
			   now.grh.sgid_index != end->gid->index ||
			   memcmp(now.grh.dgid.raw, peer->gid->gid.raw,
				  sizeof(now.grh.dgid.raw))) {
			ic_fail("%s: an address handle is not what it was made of (%d)",
				end->name, err);
			err = err ?: -EPROTO;
		}
		rdma_destroy_ah(ah, i ? RDMA_DESTROY_AH_SLEEPABLE : 0);
		if (err)
			return err;
	}
	return 0;
}

int ic_connect(struct ic_end *a, struct ic_end *b)
{
	int err;

	err = ic_check_ah(a, b) ?: ic_to_init(a) ?: ic_to_init(b) ?:
	      ic_to_rtr(a, b) ?: ic_to_rtr(b, a) ?:
	      ic_to_rts(a) ?: ic_to_rts(b);
	if (!err)
		pr_info("  %s QP %u %pI6c <-> %s QP %u %pI6c, MTU %d\n",
			a->name, a->qp->qp_num, a->gid->gid.raw, b->name,
			b->qp->qp_num, b->gid->gid.raw,
			ib_mtu_enum_to_int(min(a->mtu, b->mtu)));
	return err;
}

void ic_close(struct ic_end *end)
{
	if (end->qp && ib_destroy_qp(end->qp))
		ic_fail("%s: ib_destroy_qp", end->name);
	end->qp = NULL;
	ic_buf_free(end, &end->tx);
	ic_buf_free(end, &end->rx);
	if (end->rcq && end->rcq != end->scq)
		ib_free_cq(end->rcq);
	if (end->scq)
		ib_free_cq(end->scq);
	end->rcq = NULL;
	end->scq = NULL;
	if (end->pd)
		ib_dealloc_pd(end->pd);
	end->pd = NULL;
	if (end->gid)
		rdma_put_gid_attr(end->gid);
	end->gid = NULL;
}

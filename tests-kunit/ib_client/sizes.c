// SPDX-License-Identifier: GPL-2.0
/*
 * What ib_create_qp() grants: a table of requests, each with the capabilities
 * that came back beside those asked for.
 *
 * The rules hold for every driver: who gets a QP gets at least what was asked,
 * and who is refused finds the attributes as they were.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "ib_client.h"

enum ic_verdict {
	IC_GRANT,	/* must be granted */
	IC_REFUSE,	/* must be refused */
	IC_IRDMA_GRANT,	/* granted by this hardware, others decide themselves */
	IC_IRDMA_REFUSE,
};

/* Stands for a limit of the device in the table below. */
#define IC_WR_MAX	0xfffffff0u
#define IC_SGE_MAX	0xfffffff2u
#define IC_SGE_OVER	0xfffffff3u

struct ic_request {
	const char *name;
	enum ic_verdict verdict;
	u32 send_wr, recv_wr, send_sge, recv_sge, inline_data;
};

static const struct ic_request ic_requests[] = {
	{ "minimum",		IC_GRANT,	1, 1, 1, 1, 0 },
	{ "zero",		IC_GRANT,	0, 0, 0, 0, 0 },
	{ "send only",		IC_GRANT,	16, 0, 2, 0, 0 },
	{ "receive only",	IC_GRANT,	0, 16, 0, 2, 0 },
	{ "odd",		IC_GRANT,	7, 13, 3, 5, 0 },
	{ "odd, larger",	IC_GRANT,	129, 511, 2, 3, 17 },
	{ "unequal",		IC_GRANT,	1000, 1, 1, 1, 0 },
	{ "usual for a ULP",	IC_GRANT,	256, 256, 4, 4, 0 },
	{ "most WRs",		IC_GRANT,	IC_WR_MAX, IC_WR_MAX, 1, 1, 0 },
	{ "most SGEs",		IC_GRANT,	16, 16, IC_SGE_MAX, IC_SGE_MAX, 0 },
	{ "most of both",	IC_GRANT,	IC_WR_MAX, IC_WR_MAX,
						IC_SGE_MAX, IC_SGE_MAX, 0 },
	{ "WRs over, send",	IC_IRDMA_REFUSE,	65536, 1, 1, 1, 0 },
	{ "WRs over, recv",	IC_IRDMA_REFUSE,	1, 65536, 1, 1, 0 },
	{ "SGEs over, send",	IC_REFUSE,	1, 1, IC_SGE_OVER, 1, 0 },
	{ "SGEs over, recv",	IC_REFUSE,	1, 1, 1, IC_SGE_OVER, 0 },
	{ "2^31 send",		IC_REFUSE,	1u << 31, 1, 1, 1, 0 },
	{ "2^31 recv",		IC_REFUSE,	1, 1u << 31, 1, 1, 0 },
	{ "2^32-1 send",	IC_REFUSE,	U32_MAX, 1, 1, 1, 0 },
	{ "2^32-1 recv",	IC_REFUSE,	1, U32_MAX, 1, 1, 0 },
	{ "2^31 SGEs, send",	IC_REFUSE,	1, 1, 1u << 31, 1, 0 },
	{ "2^31 SGEs, recv",	IC_REFUSE,	1, 1, 1, 1u << 31, 0 },
	{ "2^32-1 SGEs, send",	IC_REFUSE,	1, 1, U32_MAX, 1, 0 },
	{ "2^32-1 SGEs, recv",	IC_REFUSE,	1, 1, 1, U32_MAX, 0 },
	{ "2^31 inline",	IC_REFUSE,	1, 1, 1, 1, 1u << 31 },
	{ "2^32-1 inline",	IC_REFUSE,	1, 1, 1, 1, U32_MAX },
	{ "inline 1",		IC_IRDMA_GRANT,	8, 8, 1, 1, 1 },
	{ "inline 8",		IC_IRDMA_GRANT,	8, 8, 1, 1, 8 },
	{ "inline 9",		IC_IRDMA_GRANT,	8, 8, 1, 1, 9 },
	{ "inline 48",		IC_IRDMA_GRANT,	8, 8, 1, 1, 48 },
	{ "inline 101",		IC_IRDMA_GRANT,	8, 8, 1, 1, 101 },
	{ "inline 102",		IC_IRDMA_REFUSE, 8, 8, 1, 1, 102 },
	{ "inline 220",		IC_IRDMA_REFUSE, 8, 8, 1, 1, 220 },
};

static u32 ic_limit(const struct ib_device *dev, const struct ic_options *opt,
		    u32 value, bool send)
{
	u32 wr = min_t(u32, dev->attrs.max_qp_wr, opt->max_wr);
	u32 sge = send ? dev->attrs.max_send_sge : dev->attrs.max_recv_sge;

	switch (value) {
	case IC_WR_MAX:
		return wr;
	case IC_SGE_MAX:
		return sge;
	case IC_SGE_OVER:
		return sge + 1;
	default:
		return value;
	}
}

/* "asked>granted", or "asked" alone where nothing was granted. */
static const char *ic_cell(char *text, size_t size, bool ok, u32 asked,
			   u32 granted)
{
	if (ok)
		scnprintf(text, size, "%u>%u", asked, granted);
	else
		scnprintf(text, size, "%u", asked);
	return text;
}

/* Names without CONFIG_SYMBOLIC_ERRNAME, too. */
static const char *ic_error(char *text, size_t size, int err)
{
	switch (err) {
	case -EINVAL:
		return "EINVAL";
	case -ENOMEM:
		return "ENOMEM";
	case -EOPNOTSUPP:
		return "EOPNOTSUPP";
	default:
		scnprintf(text, size, "error %d", err);
		return text;
	}
}

static void ic_print_row(const char *name, bool ok, const struct ib_qp_cap *a,
			 const struct ib_qp_cap *g, int err)
{
	char swr[24], rwr[24], ssge[24], rsge[24], data[24], result[24];

	pr_info("  %-19s %-13s %-13s %-11s %-11s %-11s %s\n", name,
		ic_cell(swr, sizeof(swr), ok, a->max_send_wr, g->max_send_wr),
		ic_cell(rwr, sizeof(rwr), ok, a->max_recv_wr, g->max_recv_wr),
		ic_cell(ssge, sizeof(ssge), ok, a->max_send_sge,
			g->max_send_sge),
		ic_cell(rsge, sizeof(rsge), ok, a->max_recv_sge,
			g->max_recv_sge),
		ic_cell(data, sizeof(data), ok, a->max_inline_data,
			g->max_inline_data),
		ok ? "granted" : ic_error(result, sizeof(result), err));
}

static void ic_check_granted(const struct ic_request *req, struct ib_qp *qp,
			     const struct ib_qp_cap *asked,
			     const struct ib_qp_cap *granted)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	int err;

	if (granted->max_send_wr < asked->max_send_wr ||
	    granted->max_recv_wr < asked->max_recv_wr ||
	    granted->max_send_sge < asked->max_send_sge ||
	    granted->max_recv_sge < asked->max_recv_sge ||
	    granted->max_inline_data < asked->max_inline_data)
		ic_fail("%s: granted less than asked", req->name);

	err = ib_query_qp(qp, &attr, IB_QP_STATE | IB_QP_CAP, &init);
	if (err) {
		ic_fail("%s: ib_query_qp: %pe", req->name, ERR_PTR(err));
		return;
	}
	if (attr.qp_state != IB_QPS_RESET && attr.qp_state != IB_QPS_INIT)
		ic_fail("%s: a new QP is in state %d", req->name,
			attr.qp_state);
	if (attr.cap.max_send_wr != granted->max_send_wr ||
	    attr.cap.max_recv_wr != granted->max_recv_wr)
		ic_fail("%s: ib_query_qp says %u/%u WRs, ib_create_qp %u/%u",
			req->name, attr.cap.max_send_wr, attr.cap.max_recv_wr,
			granted->max_send_wr, granted->max_recv_wr);
}

static void ic_try(const struct ic_request *req, struct ib_pd *pd,
		   struct ib_cq *cq, const struct ic_options *opt)
{
	struct ib_device *dev = pd->device;
	bool irdma = dev->ops.driver_id == RDMA_DRIVER_IRDMA;
	struct ib_qp_init_attr asked, attr;
	bool ok, must, must_not;
	struct ib_qp *qp;

	/* Also the padding is compared below. */
	memset(&asked, 0, sizeof(asked));
	asked.send_cq = cq;
	asked.recv_cq = cq;
	asked.qp_type = IB_QPT_RC;
	asked.sq_sig_type = IB_SIGNAL_REQ_WR;
	asked.cap.max_send_wr = ic_limit(dev, opt, req->send_wr, true);
	asked.cap.max_recv_wr = ic_limit(dev, opt, req->recv_wr, false);
	asked.cap.max_send_sge = ic_limit(dev, opt, req->send_sge, true);
	asked.cap.max_recv_sge = ic_limit(dev, opt, req->recv_sge, false);
	asked.cap.max_inline_data = req->inline_data;
	memcpy(&attr, &asked, sizeof(attr));

	qp = ib_create_qp(pd, &attr);
	ok = !IS_ERR(qp);
	ic_print_row(req->name, ok, &asked.cap, &attr.cap, PTR_ERR(qp));

	must = req->verdict == IC_GRANT ||
	       (irdma && req->verdict == IC_IRDMA_GRANT);
	must_not = req->verdict == IC_REFUSE ||
		   (irdma && req->verdict == IC_IRDMA_REFUSE);
	if (ok && must_not)
		ic_fail("%s: granted, but is over the limit", req->name);
	if (!ok && must)
		ic_fail("%s: refused with %pe", req->name, qp);
	if (!ok && must_not && PTR_ERR(qp) != -EINVAL)
		ic_fail("%s: refused with %pe instead of EINVAL", req->name,
			qp);

	if (!ok) {
		if (memcmp(&attr, &asked, sizeof(attr)))
			ic_fail("%s: refused, but init_attr changed",
				req->name);
		return;
	}
	ic_check_granted(req, qp, &asked.cap, &attr.cap);
	ib_destroy_qp(qp);
}

int ic_check_sizes(struct ib_device *dev, const struct ic_options *opt)
{
	struct ib_pd *pd;
	struct ib_cq *cq;
	unsigned int i;

	pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(pd)) {
		ic_fail("%s: ib_alloc_pd: %pe", dev_name(&dev->dev), pd);
		return PTR_ERR(pd);
	}
	cq = ib_alloc_cq(dev, NULL, 64, 0, IB_POLL_DIRECT);
	if (IS_ERR(cq)) {
		ic_fail("%s: ib_alloc_cq: %pe", dev_name(&dev->dev), cq);
		ib_dealloc_pd(pd);
		return PTR_ERR(cq);
	}

	pr_info("%s: ib_create_qp, asked>granted (device: %d WRs, %d/%d SGEs)\n",
		dev_name(&dev->dev), dev->attrs.max_qp_wr,
		dev->attrs.max_send_sge, dev->attrs.max_recv_sge);
	pr_info("  %-19s %-13s %-13s %-11s %-11s %-11s %s\n", "request",
		"send_wr", "recv_wr", "send_sge", "recv_sge", "inline",
		"result");
	for (i = 0; i < ARRAY_SIZE(ic_requests); i++)
		ic_try(&ic_requests[i], pd, cq, opt);

	ib_free_cq(cq);
	ib_dealloc_pd(pd);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ib_client - an ordinary in-kernel user of the RDMA core that checks the
 * driver beneath it.  It calls the public interface of ib_core only, so it
 * judges any RoCE driver alike.
 */
#ifndef IB_CLIENT_H
#define IB_CLIENT_H

#include <linux/atomic.h>
#include <linux/scatterlist.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

/* Bytes that travel each way over one link. */
#define IC_BYTES	SZ_1M

/* Work requests under way at a time; also what each QP is asked for. */
#define IC_WINDOW	16

#define IC_MAX_SGE	6

/* RECVs left on a QP when it is taken down: each must come back flushed. */
#define IC_LEFTOVER	5

#define IC_TIMEOUT_MS	20000

/* What the module's parameters ask for. */
struct ic_options {
	bool more;	/* also immediate data and RDMA READ */
	bool fastreg;	/* the peer's key comes from a fast registration */
	bool bench;	/* costs instead of correctness */
	bool ipv6;	/* connect by an IPv6 address */
	const char *cases;	/* situations to try, and nothing else */
	unsigned int max_wr;	/* most work requests that the table asks for */
};

/* One work request and what its completion must say. */
struct ic_slot {
	struct ib_cqe cqe;
	struct ic_end *end;
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	u32 len;
	u32 imm;
	bool with_imm;
	bool silent;	/* not signalled: it may complete by an error only */
	unsigned int seen;
};

/* Memory as the device and the peer know it. */
struct ic_buf {
	void *va;
	struct scatterlist sg;
	bool mapped;
	struct ib_mr *mr;
	u64 addr;	/* DMA address, for local use */
	u64 iova;	/* address that goes with @rkey */
	u32 rkey;
};

/* One end of a connection: a QP with all that it needs. */
struct ic_end {
	const char *name;
	struct ib_device *dev;
	u32 port;
	const struct ib_gid_attr *gid;
	u8 mac[ETH_ALEN];
	enum ib_mtu mtu;

	struct ib_pd *pd;
	enum ib_poll_context poll;
	struct ib_cq *scq;
	struct ib_cq *rcq;	/* may be @scq */
	struct ib_qp *qp;
	struct ib_qp_cap cap;
	u32 psn;

	struct ic_buf tx;
	struct ic_buf rx;

	struct ic_slot send[IC_WINDOW + 1];
	struct ic_slot recv[IC_WINDOW + 1];
	atomic_t pending;
	wait_queue_head_t wait;
};

/* report.c */
__printf(1, 2) void ic_fail(const char *fmt, ...);
bool ic_failed(void);
const char *ic_reason(void);
void ic_report_reset(void);

/* sizes.c */
int ic_check_sizes(struct ib_device *dev, const struct ic_options *opt);

/* link.c */
void ic_init_end(struct ic_end *end, struct ib_device *dev);
int ic_find_address(struct ic_end *end, bool ipv6);
int ic_open(struct ic_end *end, enum ib_poll_context poll, bool share_cq,
	    const struct ic_options *opt);
int ic_connect(struct ic_end *a, struct ic_end *b);
int ic_to_error(struct ic_end *end);
void ic_close(struct ic_end *end);

/* traffic.c */
void ic_arm(struct ic_slot *slot, struct ic_end *end, enum ib_wc_opcode opcode,
	    u32 len);
int ic_wait(struct ic_end *end, const char *what);
int ic_post_recv(struct ic_end *end, struct ic_slot *slot, u32 offset, u32 len,
		 u32 nsge);
int ic_register(struct ic_end *end);
int ic_exchange(struct ic_end *from, struct ic_end *to,
		const struct ic_options *opt, u64 seed);
int ic_drain(struct ic_end *end, bool by_hand);

/* cases.c */
void ic_run_cases(struct ic_end *a, struct ic_end *b, struct ib_device *dev,
		  const char *rows);

/* bench.c */
int ic_bench(struct ic_end *a, struct ic_end *b);

#endif

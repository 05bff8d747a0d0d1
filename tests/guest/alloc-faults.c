// SPDX-License-Identifier: GPL-2.0
/*
 * Lets the first kernel allocation of a verb fail, then the second, and so on
 * until the verb succeeds without one failing. Needs a kernel with fault
 * injection, whose filters are set by the caller. Prints TAP lines.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST	2000

static struct ibv_device *device;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static int gid_index;
static void *memory;

static int nth = -1;

static void fail_nth(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(nth, text, len, 0) != len) {
		perror("fail-nth");
		exit(1);
	}
}

/* Whether what was asked for is still to come. */
static int not_reached(void)
{
	char text[16] = "";

	if (pread(nth, text, sizeof(text) - 1, 0) < 0)
		return 0;
	return atoi(text) != 0;
}

static void *try_open(void) { return ibv_open_device(device); }
static void undo_open(void *c) { ibv_close_device(c); }

static void *try_pd(void) { return ibv_alloc_pd(context); }
static void undo_pd(void *p) { ibv_dealloc_pd(p); }

static void *try_cq(void) { return ibv_create_cq(context, 100, NULL, NULL, 0); }
static void undo_cq(void *c) { ibv_destroy_cq(c); }

static void *try_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 3,
			.max_recv_sge = 3,
		},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
}

static void undo_qp(void *q) { ibv_destroy_qp(q); }

static void *try_ud(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_UD,
	};

	return ibv_create_qp(pd, &init);
}

static void *try_small(void)
{
	return ibv_reg_mr(pd, memory, 1 << 16, IBV_ACCESS_LOCAL_WRITE);
}

static void *try_large(void)
{
	return ibv_reg_mr(pd, memory, 16 << 20, IBV_ACCESS_LOCAL_WRITE);
}

static void undo_mr(void *m) { ibv_dereg_mr(m); }

static void *try_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh.sgid_index = gid_index,
		.grh.hop_limit = 4,
	};

	if (ibv_query_gid(context, 1, gid_index, &attr.grh.dgid))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

static void undo_ah(void *a) { ibv_destroy_ah(a); }

static const struct {
	const char *name;
	void *(*make)(void);
	void (*undo)(void *object);
} verbs[] = {
	{ "open device", try_open, undo_open },
	{ "alloc PD", try_pd, undo_pd },
	{ "create CQ", try_cq, undo_cq },
	{ "create RC QP", try_qp, undo_qp },
	{ "create UD QP", try_ud, undo_qp },
	{ "register 64 KiB", try_small, undo_mr },
	{ "register 16 MiB", try_large, undo_mr },
	{ "create AH", try_ah, undo_ah },
};

static int all_sites(int i)
{
	int n, refused = 0;

	for (n = 1; n <= MOST; n++) {
		void *object;
		int err, was_last;

		errno = 0;
		fail_nth(n);
		object = verbs[i].make();
		err = errno;
		was_last = not_reached();
		fail_nth(0);
		if (object)
			verbs[i].undo(object);
		else
			refused++;
		if (!object && !err) {
			printf("not ok - %s: allocation %d: no errno\n",
			       verbs[i].name, n);
			return 1;
		}
		if (!was_last)
			continue;
		if (!object) {
			printf("not ok - %s: fails without a fault: %s\n",
			       verbs[i].name, strerror(err));
			return 1;
		}
		if (n < 2) {
			printf("not ok - %s: nothing was allocated\n",
			       verbs[i].name);
			return 1;
		}
		printf("ok - %s: each of %d allocations failed, %d times the verb did\n",
		       verbs[i].name, n - 1, refused);
		return 0;
	}
	printf("not ok - %s: no end after %d allocations\n", verbs[i].name,
	       MOST);
	return 1;
}

int main(int argc, char **argv)
{
	/* Never freed: its devices are used to the end. */
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int i, bad = 0;

	setlinebuf(stdout);
	device = devices ? devices[0] : NULL;
	gid_index = argc > 1 ? atoi(argv[1]) : 0;
	nth = open("/proc/thread-self/fail-nth", O_RDWR);
	memory = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	context = device ? try_open() : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 200, NULL, NULL, 0) : NULL;
	if (nth < 0 || memory == MAP_FAILED || !cq) {
		printf("not ok - allocations fail: no device, or a kernel without fault injection\n");
		return 1;
	}
	for (i = 0; i < (int)(sizeof(verbs) / sizeof(verbs[0])); i++)
		bad |= all_sites(i);
	return bad;
}

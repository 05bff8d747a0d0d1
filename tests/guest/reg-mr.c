// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to register and deregister 64 MiB, in nanoseconds of a machine
 * with one CPU, which are instructions where QEMU counts them (-icount
 * shift=0). All work counts, whoever does it: a driver may leave some to a
 * worker. Only waiting does not, which a thread that runs when nobody else
 * does soaks up.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LENGTH	(64ul << 20)
#define RUNS	31

static clockid_t soaked;

static void *soak(void *ready)
{
	struct sched_param param = { 0 };

	if (sched_setscheduler(0, SCHED_IDLE, &param)) {
		perror("SCHED_IDLE");
		exit(1);
	}
	pthread_barrier_wait(ready);
	for (;;)
		asm volatile("");
	return NULL;
}

static int start_soaking(void)
{
	static pthread_barrier_t ready;
	pthread_t thread;

	if (pthread_barrier_init(&ready, NULL, 2) ||
	    pthread_create(&thread, NULL, soak, &ready) ||
	    pthread_getcpuclockid(thread, &soaked))
		return 1;
	pthread_barrier_wait(&ready);
	return 0;
}

static long long at(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static long long now(void)
{
	return at(CLOCK_MONOTONIC_RAW) - at(soaked);
}

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return x < y ? -1 : x > y;
}

static int measure(struct ibv_pd *pd, const char *size, int flags)
{
	long long reg[RUNS], dereg[RUNS];
	struct ibv_mr *mr[RUNS];
	void *memory;
	int i;

	memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (memory == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	if (!flags)
		madvise(memory, LENGTH, MADV_NOHUGEPAGE);
	memset(memory, 1, LENGTH);

	/*
	 * All are there at once. One after the other they would take the same
	 * slots of the allocator each time, and where these happened to lie
	 * would decide whether each goes the allocator's short way.
	 */
	for (i = 0; i < RUNS; i++) {
		long long begin = now();

		mr[i] = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE);
		reg[i] = now() - begin;
		if (!mr[i]) {
			perror("ibv_reg_mr");
			return 1;
		}
	}
	for (i = 0; i < RUNS; i++) {
		long long begin = now();

		if (ibv_dereg_mr(mr[i])) {
			perror("ibv_dereg_mr");
			return 1;
		}
		dereg[i] = now() - begin;
	}
	qsort(reg, RUNS, sizeof(reg[0]), compare);
	qsort(dereg, RUNS, sizeof(dereg[0]), compare);
	printf("bench reg_user_mr_%s instructions %lld\n", size, reg[RUNS / 2]);
	printf("bench dereg_user_mr_%s instructions %lld\n", size,
	       dereg[RUNS / 2]);
	munmap(memory, LENGTH);
	return 0;
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_pd *pd;

	if (start_soaking()) {
		fprintf(stderr, "no thread to measure the waiting\n");
		return 1;
	}
	if (!devices || !devices[0] || !(context = ibv_open_device(devices[0])) ||
	    !(pd = ibv_alloc_pd(context))) {
		fprintf(stderr, "no device to measure\n");
		return 1;
	}
	return measure(pd, "4k", 0) || measure(pd, "2m", MAP_HUGETLB);
}

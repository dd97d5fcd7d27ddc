/* SPDX-License-Identifier: MIT */
/*
 * Benchmarks `sync` and `churn`: what threads cost each other, and what making
 * them costs, on NPTL and on FlexSC-Threads.
 */
#include "bench/figures.h"

static int run_sync(const struct bench_options *o)
{
	static struct figure times[] = {
		{ .key = "cond", .label = "condvar, one way" },
		{ .key = "sem", .label = "semaphore, one way" },
		{ .key = "yield", .label = "sched_yield" },
		{ .key = "mutex", .label = "mutex lock+unlock" },
	};
	static struct figure sizes[] = {
		{ .key = "resident", .label = "resident" },
		{ .key = "kernel", .label = "kernel" },
		{ .key = "sum", .label = "sum" },
	};

	for (int i = 0; i < 4; i++) {
		times[i].metric = "time";
		times[i].unit = "ns";
	}
	for (int i = 0; i < 3; i++) {
		sizes[i].metric = "memory of an idle thread";
		sizes[i].unit = "KB";
	}
	figures_run("sync", o, &workload_sync, times, 4);
	figures_run("sync", o, &workload_idle, sizes, 3);
	return 0;
}

static int run_churn(const struct bench_options *o)
{
	static struct figure figures[] = {
		{ .key = "join", .label = "create+join" },
		{ .key = "exit", .label = "create+join, pthread_exit" },
		{ .key = "detached", .label = "create detached" },
		{ .key = "many", .label = "20,000 at once" },
	};

	for (int i = 0; i < 4; i++) {
		figures[i].metric = "time of a thread";
		figures[i].unit = "us";
	}
	figures_run("churn", o, &workload_churn, figures, 4);
	return 0;
}

const struct bench bench_sync = {
	.name = "sync",
	.summary = "waking, switching, locking, idle threads: beside NPTL",
	.run = run_sync,
};

const struct bench bench_churn = {
	.name = "churn",
	.summary = "making threads, and 20,000 of them at once: beside NPTL",
	.cases = "how the threads end; a thread that returns can be used again",
	.run = run_churn,
};

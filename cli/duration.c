/* SPDX-License-Identifier: MIT */
/* Asking for latencies, and what they say; see cli/duration.h. */
#include "cli/duration.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

enum {
	TIMED_A_SECOND = 1000,
	LEAST_MS = 10, /* of a second */
	SHORTEST_MS = 2,
};

static int get(pid_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size };
	struct iovec there = { (void *)(uintptr_t)address, size };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size ?
		       0 :
		       -1;
}

static void put(pid_t pid, uint64_t address, const void *from, size_t size)
{
	struct iovec here = { (void *)(uintptr_t)from, size };
	struct iovec there = { (void *)(uintptr_t)address, size };

	process_vm_writev(pid, &here, 1, &there, 1, 0);
}

static int get_trace(pid_t pid, uint64_t address, struct flexsc_trace *trace)
{
	if (get(pid, address, trace, sizeof(*trace)))
		return -1;
	return trace->magic == FLEXSC_TRACE_MAGIC &&
			       trace->version == FLEXSC_TRACE_VERSION &&
			       trace->self == address ?
		       0 :
		       -1;
}

uint32_t duration_ask(pid_t pid, uint64_t address, uint32_t ms)
{
	const uint32_t one = 1;
	struct flexsc_trace trace;
	struct timespec now;
	uint32_t now_ms, until;

	if (get_trace(pid, address, &trace))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ms = (uint32_t)((uint64_t)now.tv_sec * 1000 +
			    (uint64_t)now.tv_nsec / 1000000);
	until = (now_ms + ms) | 1;
	if (trace.latency_until_ms &&
	    (int32_t)(trace.latency_until_ms - until) > 0 &&
	    (int32_t)(trace.latency_until_ms - until) < 3600000)
		return trace.latency_until_ms - now_ms;
	put(pid, address + offsetof(struct flexsc_trace, latency_until_ms),
	    &until, sizeof(until));
	put(pid, trace.wanted, &one, sizeof(one));
	return ms;
}

/* How much of the time since the last asking it was counted, at most 1. */
static double covered(const struct duration_share *share, uint64_t now_ns)
{
	if (now_ns <= share->at_ns || share->until_ns >= now_ns)
		return 1;
	return share->until_ns > share->at_ns ?
		       (double)(share->until_ns - share->at_ns) /
			       (double)(now_ns - share->at_ns) :
		       0;
}

/* Calls a ms, as far as is known. */
static double rate(const struct duration_share *share, uint64_t now_ns,
		   uint64_t timed, uint64_t posted, double part)
{
	double all = (double)(posted - share->posted);

	if (all < (double)timed / part)
		all = (double)timed / part;
	return all * 1e6 / (double)(now_ns - share->at_ns);
}

uint32_t duration_share(struct duration_share *share, uint64_t now_ns,
			const struct flexsc_trace_latency *sum, uint64_t posted,
			uint32_t interval_ms, uint32_t most_ms)
{
	double part = covered(share, now_ns), least, wanted = 0;
	double seconds = interval_ms / 1000.0;
	bool known = share->at_ns && part > 0 && now_ns > share->at_ns;
	uint64_t timed = 0;

	for (unsigned int nr = 0; nr < FLEXSC_TRACE_CALLS; nr++) {
		uint64_t new = sum[nr].nr - share->timed[nr];

		/* What was counted before us tells nothing of a part. */
		share->made[nr] += known ? (uint64_t)((double)new / part) : new;
		share->timed[nr] = sum[nr].nr;
		timed += new;
	}
	if (known)
		wanted = seconds * TIMED_A_SECOND /
			 (rate(share, now_ns, timed, posted, part) + 1e-6);
	share->at_ns = now_ns;
	share->posted = posted;
	if (wanted >= interval_ms)
		return most_ms;
	least = seconds * LEAST_MS;
	if (least < SHORTEST_MS)
		least = SHORTEST_MS;
	/* It got no processor so soon. */
	share->in_vain = known && !timed ? share->in_vain + 1 : 0;
	for (unsigned int i = 0; i < share->in_vain && least < interval_ms; i++)
		least *= 2;
	return (uint32_t)(wanted < least ? least : wanted);
}

void duration_add(pid_t pid, uint64_t address, struct flexsc_trace_latency *sum)
{
	const size_t size = FLEXSC_TRACE_CALLS * sizeof(*sum);
	struct flexsc_trace_latency *one = malloc(size);
	struct flexsc_trace trace;

	if (one && !get_trace(pid, address, &trace) && trace.latencies &&
	    !get(pid, trace.latencies, one, size))
		for (unsigned int n = 0; n < FLEXSC_TRACE_CALLS; n++) {
			sum[n].nr += one[n].nr;
			sum[n].ns += one[n].ns;
			if (sum[n].most_ns < one[n].most_ns)
				sum[n].most_ns = one[n].most_ns;
			for (unsigned int b = 0; b < FLEXSC_TRACE_BUCKETS; b++)
				sum[n].bucket[b] += one[n].bucket[b];
		}
	free(one);
}

double duration_limit(unsigned int bucket)
{
	return (double)(1ull << (bucket + 7)) / 1e9;
}

struct duration duration_between(const struct flexsc_trace_latency *before,
				 const struct flexsc_trace_latency *now)
{
	static const struct flexsc_trace_latency none;
	struct duration l = { 0 };
	uint64_t sum = 0, nr, all = 0;

	if (!before)
		before = &none;
	if (now->nr <= before->nr)
		return l;
	l.nr = now->nr - before->nr;
	l.mean = (double)(now->ns - before->ns) / (double)l.nr;
	for (unsigned int b = 0; b < FLEXSC_TRACE_BUCKETS; b++)
		all += now->bucket[b] - before->bucket[b];
	for (unsigned int b = 0; b < FLEXSC_TRACE_BUCKETS && all; b++) {
		nr = now->bucket[b] - before->bucket[b];
		sum += nr;
		if (!l.half && 2 * sum >= all)
			l.half = duration_limit(b) * 1e9;
		if (!l.most_99 && 100 * sum >= 99 * all)
			l.most_99 = duration_limit(b) * 1e9;
	}
	return l;
}

void duration_text(double ns, char text[16])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	unsigned int unit = 0;

	text[0] = '\0';
	if (ns <= 0)
		return;
	while (ns >= 999.5 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	snprintf(text, 16, ns < 99.95 && unit ? "%.1f %s" : "%.0f %s", ns,
		 units[unit]);
}

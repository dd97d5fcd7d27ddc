/* SPDX-License-Identifier: MIT */
/*
 * What the machine is, its processors, and what its basic operations cost.
 * Times are in nanoseconds; NAN where it cannot be measured (one processor).
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <json-c/json.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <x86intrin.h>

struct machine {
	char kernel[128];
	char cpu[128];
	char mitigations[512];
	int nr_cpus; /* allowed */
	int nr_online;
	int cpu_app, cpu_other; /* cpu_other: -1 if there is only one */
	int io_uring_disabled; /* the sysctl; -1: this kernel has none */
	bool fsgsbase, membarrier;
	struct rlimit nofile;
	cpu_set_t allowed;
};

/* Read once, before anything is pinned. */
const struct machine *machine(void);
/* The facts, for a line of JSON; the caller owns the object. */
struct json_object *machine_json(void);

/* This thread to one processor, or back to all allowed ones. */
void machine_pin(int cpu);
void machine_unpin(void);

double cost_crossing_ns(void);
double cost_getppid_ns(void);
double cost_roundtrip_ns(void);
double cost_futex_ns(void);

/*
 * Short intervals: ticks of the TSC, in order with what stands around them.
 * ticks_ns() takes off what reading the clock twice costs.
 */
static inline uint64_t ticks(void)
{
	uint64_t now;

	_mm_lfence();
	now = __rdtsc();
	_mm_lfence();
	return now;
}

/* @ticks measured in @nr intervals. */
double ticks_ns(uint64_t ticks, uint64_t nr);
uint64_t now_ns(void);
/* Spin for so long. */
void spin_ns(double ns);

#endif /* BENCH_MACHINE_H */

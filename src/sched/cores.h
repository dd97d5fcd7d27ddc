/* SPDX-License-Identifier: MIT */
/*
 * On how many cores? Tasks that answer short requests are dearer on many
 * carriers than on few: each finds little to do, sleeps, is woken for the next
 * request, and takes the processor from whoever asks. (Hello HTTP, 256
 * connections, client on the same two processors: 9.1 us a request and 104,000
 * a second on two carriers, 5.7 us and 154,000 on one.) So carriers that the
 * load does without are sent to rest.
 *
 * Whether it does without is tried: what was done before is compared with what
 * is done with fewer. It is only tried while tasks run for short, and given up
 * at once when one runs for long while others wait.
 *
 * No clocks and no threads here: sched/resting.c measures windows and does
 * what it is told. (Cf. core allocation by load in later systems; the paper
 * leaves the number of cores to the user, flexsc-osdi10.txt, 3.6.)
 */
#ifndef FX_SCHED_CORES_H
#define FX_SCHED_CORES_H

#include "base/types.h"

#define FX_CORES_WINDOW_NS (20 * FX_NS_PER_MS)

enum fx_cores_state {
	FX_CORES_STEADY,
	FX_CORES_WARMING, /* another number, not measured yet */
	FX_CORES_TRYING, /* to be compared */
};

/* When to try again: each failure doubles the pause. */
struct fx_cores_pause {
	uint64_t next_ns, pause_ns;
};

struct fx_cores {
	enum fx_cores_state state;
	uint32_t nr; /* carriers that do not rest; 0 before the first window */
	uint32_t before; /* the same before the trial */
	uint32_t windows; /* of the trial, so far */
	double calls, slices, ns; /* lately; windows count half as much each */
	bool by_slices; /* what is compared: they make hardly any calls */
	double rate; /* of that, a nanosecond, before the trial */
	struct fx_cores_pause fewer, more;
};

/* What was seen. */
struct fx_cores_window {
	uint64_t now_ns, ns; /* end, length */
	uint64_t cpu_ns; /* processor time of all carriers */
	uint64_t calls; /* that tasks made */
	uint64_t slices; /* how often one took the place of another */
	bool saturated; /* no carrier slept, of those that do not rest */
	uint32_t most; /* carriers */
};

/* A window is over. Return: how many are not to rest from now on. */
uint32_t fx_cores_step(struct fx_cores *cores,
		       const struct fx_cores_window *window);

/* Tasks wait for one that runs long: all are needed, for a while. */
void fx_cores_all(struct fx_cores *cores, uint64_t now_ns, uint32_t most);

#endif /* FX_SCHED_CORES_H */

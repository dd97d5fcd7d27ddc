/* SPDX-License-Identifier: MIT */
/* Windows of time, measured by the owner; see engine/trial.h. */
#include "engine/trial.h"

#include "arch/fd.h"
#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Waits between two looks at the clock, unless they are this far apart. */
#define WAITS_A_LOOK 16
#define LOOK_NS (FX_WORTH_WINDOW_NS / 8)
/* A longer gap between looks was no window: the owner was elsewhere. */
#define GAP_NS (2 * FX_WORTH_WINDOW_NS)

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

void fx_trial_begin(struct fx_trial *t, const struct flexsc_counters *counters)
{
	t->begin_ns = t->looked_ns = fx_now_ns();
	t->cpu_ns = own_cpu_ns();
	t->completed = counters->completed;
}

enum fx_trial_look fx_trial_look(struct fx_trial *t,
				 const struct flexsc_counters *counters,
				 struct fx_worth_window *window)
{
	uint64_t now_ns = fx_now_ns(), gap_ns = now_ns - t->looked_ns;

	t->waits = gap_ns > LOOK_NS ? 1 : WAITS_A_LOOK;
	t->looked_ns = now_ns;
	if (gap_ns > GAP_NS) {
		fx_trial_begin(t, counters);
		return FX_TRIAL_AGAIN;
	}
	if (now_ns - t->begin_ns < FX_WORTH_WINDOW_NS)
		return FX_TRIAL_GOES_ON;
	*window = (struct fx_worth_window){
		.now_ns = now_ns,
		.ns = now_ns - t->begin_ns,
		.cpu_ns = own_cpu_ns() - t->cpu_ns,
		.completions = counters->completed - t->completed,
	};
	return FX_TRIAL_OVER;
}

/* As many runnable threads as processors: none of them is free. */
bool fx_trial_processor_free(void)
{
	char text[64] = { 0 }, *at;
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		fx_close(fd);
	at = n > 0 ? strchr(text, '/') : NULL;
	while (at && at > text && at[-1] != ' ')
		at--;
	return !at || atol(at) < sysconf(_SC_NPROCESSORS_ONLN);
}

/* SPDX-License-Identifier: MIT */
/* The shared mapping that holds the counters of one owner. */
#include "page/counters.h"

#include "page/shown.h"
#include "page/trace.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

struct flexsc_counters *fx_counters_new(void)
{
	struct flexsc_counters *c = fx_shown_new("flexsc-counters", sizeof(*c));

	if (!c)
		return NULL;
	c->version = FLEXSC_COUNTERS_VERSION;
	c->size = sizeof(*c);
	c->pid = (uint32_t)getpid();
	c->tid = (uint32_t)syscall(SYS_gettid);
	c->trace = (uintptr_t)fx_trace_start();
	return c;
}

void fx_counters_name(struct flexsc_counters *c, const char *engine)
{
	snprintf(c->engine, sizeof(c->engine), "%s", engine);
	/* Last: whoever sees it may read the rest. */
	__atomic_store_n(&c->magic, FLEXSC_COUNTERS_MAGIC, __ATOMIC_RELEASE);
}

void fx_counters_free(struct flexsc_counters *counters)
{
	fx_shown_free(counters, sizeof(*counters));
}

/* SPDX-License-Identifier: MIT */
/* What observers are shown; see threads/observe.h. */
#include "threads/observe.h"

#include "page/shown.h"
#include "threads/thread.h"

#include <flexsc/observe.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* For debuggers, by this name. */
__attribute__((visibility("default"))) struct flexsc_process *flexsc_process;

static void tell_threads(struct flexsc_process *p)
{
	static const char names[] = FX_THREAD_COUNTERS(FX_COUNTER_NAME);

	_Static_assert(sizeof(names) <= sizeof(p->thread_count_names),
		       "they fit");
	memcpy(p->thread_count_names, names, sizeof(names));
	p->thread_counts = (uintptr_t)&fx_thread_counters.created;
	p->threads = (uintptr_t)fx_threads_first();
	p->homes = (uintptr_t)fx_thread_counters.homes;
	p->reasons = (uintptr_t)fx_home_reason_names;
	p->nr_reasons = FX_NR_HOME_REASONS;
	p->thread.next = offsetof(struct fx_thread, all);
	p->thread.tid = offsetof(struct fx_thread, tid);
	p->thread.stays = offsetof(struct fx_thread, stays);
}

static struct flexsc_process *begin(void)
{
	struct flexsc_process *p = flexsc_process;

	if (!p)
		p = fx_shown_new("flexsc-process", sizeof(*p));
	if (!p)
		return NULL;
	p->version = FLEXSC_PROCESS_VERSION;
	p->size = sizeof(*p);
	p->pid = (uint32_t)getpid();
	return p;
}

static void show(struct flexsc_process *p)
{
	/* Last: whoever sees it may read the rest. */
	fx_store_release(&p->magic, (uint32_t)FLEXSC_PROCESS_MAGIC);
	flexsc_process = p;
}

void fx_observe_start(void)
{
	struct flexsc_process *p = begin();

	if (!p)
		return;
	fx_sched_observe(p);
	tell_threads(p);
	show(p);
}

void fx_observe_declined(const char *why)
{
	struct flexsc_process *p = begin();

	if (!p)
		return;
	snprintf(p->declined, sizeof(p->declined), "%s", why);
	show(p);
}

void fx_observe_after_fork(void)
{
	/* It is shared with the parent: a new one is made. */
	if (flexsc_process)
		fx_shown_free(flexsc_process, sizeof(*flexsc_process));
	flexsc_process = NULL;
}

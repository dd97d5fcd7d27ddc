/* SPDX-License-Identifier: MIT */
/* What happens when the library is loaded, and in children. */
#include "preload/seen.h"
#include "threads/start.h"
#include "threads/stats.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Take this library out of what programs that are executed from here preload. */
static void leave_environment(void)
{
	char *list = getenv("LD_PRELOAD"), *item, *rest, *left;

	list = list ? strdup(list) : NULL;
	left = list ? calloc(1, strlen(list) + 2) : NULL;
	if (!left)
		goto free;
	for (item = strtok_r(list, ": ", &rest); item;
	     item = strtok_r(NULL, ": ", &rest)) {
		if (strstr(item, "libflexsc-threads.so"))
			continue;
		strcat(left, *left ? ":" : "");
		strcat(left, item);
	}
	if (*left)
		setenv("LD_PRELOAD", left, 1);
	else
		unsetenv("LD_PRELOAD");
	unsetenv("FLEXSC_PROCESS");
free:
	free(list);
	free(left);
}

/*
 * Is the library for one process only, and this another? A process stays the
 * same through any number of execve(2): wrapping scripts, env(1).
 */
static bool meant_for_another(void)
{
	const char *process = getenv("FLEXSC_PROCESS");

	return process && strtol(process, NULL, 10) != getpid();
}

/* By exit(3), or by returning from main(). */
static void exits(int status, void *unused)
{
	(void)unused;
	if (fx_watched())
		fx_seen_last(status);
}

static __attribute__((constructor)) void init(void)
{
	if (meant_for_another()) {
		leave_environment();
		fx_threads_never();
		return;
	}
	pthread_atfork(NULL, NULL, fx_threads_after_fork);
	on_exit(exits, NULL);
	/* An observer has started this program. */
	if (secure_getenv("FLEXSC_TRACE"))
		fx_trace_start();
}

static __attribute__((destructor)) void fini(void)
{
	fx_stats_at_exit();
}

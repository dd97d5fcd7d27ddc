/* SPDX-License-Identifier: MIT */
/* The statistics of a process; see threads/stats.h. */
#include "threads/stats.h"

#include "base/clock.h"
#include "threads/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

const char *const fx_home_reason_names[FX_NR_HOME_REASONS] = {
	[FX_HOME_SIGNAL] = "signal",
	[FX_HOME_CANCEL] = "cancel",
	[FX_HOME_EXIT] = "exit",
	[FX_HOME_MASK] = "signal mask",
	[FX_HOME_LOCK] = "lock",
	[FX_HOME_PROCESS] = "process",
	[FX_HOME_IDENTITY] = "identity",
	[FX_HOME_CALL] = "call",
	[FX_HOME_MAIN] = "first thread",
	[FX_HOME_STACK] = "own stack",
	[FX_HOME_FOREIGN] = "foreign thread",
	[FX_HOME_OFTEN] = "too often",
};

static uint64_t get(const uint64_t *counter)
{
	return fx_load_relaxed(counter);
}

/* A name may hold anything; what JSON would not take is left out. */
static void name(FILE *out, const char *name)
{
	for (; *name; name++)
		if (*name != '"' && *name != '\\' &&
		    (unsigned char)*name >= ' ')
			putc(*name, out);
}

static void queues(FILE *out)
{
	struct fx_queue_counters c;

#define WRITE(name)                                             \
	fprintf(out, "%s\"" #name "\":%lu", separator, c.name); \
	separator = ",";

	for (uint32_t i = 0; i < fx_sched_nr_queues(); i++) {
		const char *separator = "";

		fx_sched_counters(i, &c);
		fputs(i ? ",{" : "{", out);
		FX_QUEUE_COUNTERS(WRITE)
		putc('}', out);
	}
#undef WRITE
}

static void carriers(FILE *out)
{
	struct fx_carrier_counters c;

	fx_sched_carriers(&c);
	fprintf(out,
		"{\"now\":%lu,\"spares\":%lu,\"sleeping\":%lu,"
		"\"resting\":%lu,\"made\":%lu,"
		"\"ended\":%lu,\"closes_moved\":%lu}",
		c.carriers, c.spares, c.sleeping, c.resting, c.made, c.ended,
		c.closes_moved);
}

static const char *name_of(enum fx_task_state state)
{
	switch (state) {
	case FX_TASK_PARKED:
	case FX_TASK_HOME:
		return "parked";
	case FX_TASK_WOKEN:
		return "ready";
	default:
		return "running";
	}
}

struct listing {
	FILE *out;
	bool any;
};

static void list(struct fx_thread *t, void *arg)
{
	struct listing *l = arg;
	struct fx_task_look look;

	if (!t->tid)
		return;
	fx_task_look(&t->task, &look);
	fprintf(l->out, "%s{\"tid\":%d,\"state\":\"%s\",\"at_home\":%s",
		l->any ? "," : "", (int)t->tid, name_of(look.state),
		look.at_home ? "true" : "false");
	l->any = true;
	if (look.where)
		fprintf(l->out, ",\"where\":\"%s\",\"for_ms\":%u", look.where,
			fx_now_ms_coarse() - look.since_ms);
	if (t->stays)
		fprintf(l->out, ",\"stays\":\"%s\"",
			fx_home_reason_names[t->stays]);
	fprintf(l->out, "}");
}

void fx_stats_write(FILE *out)
{
	struct listing listing = { .out = out };
	bool any = false;

	fprintf(out, "{\"pid\":%d,\"program\":\"", (int)getpid());
	name(out, program_invocation_short_name);
	fprintf(out,
		"\",\"created\":%lu,\"recycled\":%lu,\"ended\":%lu,\"homes\":{",
		get(&fx_thread_counters.created),
		get(&fx_thread_counters.recycled),
		get(&fx_thread_counters.ended));
	for (unsigned i = 0; i < FX_NR_HOME_REASONS; i++) {
		uint64_t n = get(&fx_thread_counters.homes[i]);

		if (!n || !fx_home_reason_names[i])
			continue;
		fprintf(out, "%s\"%s\":%lu", any ? "," : "",
			fx_home_reason_names[i], n);
		any = true;
	}
	fprintf(out, "},\"queues\":[");
	queues(out);
	fprintf(out, "],\"carriers\":");
	carriers(out);
	fprintf(out, ",\"threads\":[");
	fx_threads_walk(list, &listing);
	fprintf(out, "]}\n");
}

void fx_stats_at_exit(void)
{
	const char *path = getenv("FLEXSC_STATS");
	char *line = NULL;
	size_t size = 0;
	FILE *memory, *out;

	if (!path || !*path || !fx_load_relaxed(&fx_threads_running))
		return;
	memory = open_memstream(&line, &size);
	if (!memory)
		return;
	fx_stats_write(memory);
	fclose(memory);
	/* One write, so that lines of several processes do not mix. */
	out = fopen(path, "ae");
	if (out) {
		setvbuf(out, NULL, _IOFBF, size + 1);
		fwrite(line, 1, size, out);
		fclose(out);
	}
	free(line);
}

/* SPDX-License-Identifier: MIT */
/*
 * `flexsc stat`: what a process that uses FlexSC is doing, as numbers. It looks
 * twice, a second apart, for what goes on in between; cli/stat_print.c and
 * cli/stat_export.c write it down.
 */
#include "cli/stat.h"

#include "cli/commands.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <flexsc.h>

const char *const stat_doing_names[NR_DOINGS] = {
	[DOING_RUNS] = "running",  [DOING_READY] = "ready",
	[DOING_PARKED] = "parked", [DOING_HOME] = "at home",
	[DOING_NOTHING] = "kept",
};

void stat_sum(const struct look *look, struct sum *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; i < look->nr_calls; i++) {
		const struct flexsc_counters *c = &look->calls[i].counters;

		sum->completed += c->completed;
		sum->at_once += c->at_once;
		sum->parked += c->parked;
		sum->cancelled += c->cancelled;
		sum->handed_over += c->handed_over;
		sum->batches += c->batches;
		sum->batch_calls += c->batch_calls;
		sum->threads += c->threads;
		for (unsigned int nr = 0; nr < FLEXSC_COUNTERS_CALLS; nr++)
			sum->calls[nr] += c->calls[nr];
		snprintf(sum->engine, sizeof(sum->engine), "%s",
			 !*sum->engine || !strcmp(sum->engine, c->engine) ?
				 c->engine :
				 "mixed");
	}
}

void stat_doings(const struct look *look, unsigned int nr[NR_DOINGS])
{
	memset(nr, 0, NR_DOINGS * sizeof(*nr));
	for (unsigned int i = 0; i < look->nr_threads; i++)
		nr[look->threads[i].doing]++;
}

double stat_rate(uint64_t before, uint64_t now, double seconds)
{
	return seconds > 0 && now > before ? (double)(now - before) / seconds :
					     0;
}

struct duration stat_latency(const struct look *before, const struct look *now,
			     unsigned int nr)
{
	if (!before->latency || !now->latency || before == now)
		return (struct duration){ 0 };
	return duration_between(&before->latency[nr], &now->latency[nr]);
}

void stat_calls(const struct look *look, uint64_t calls[FLEXSC_COUNTERS_CALLS])
{
	struct sum sum;

	stat_sum(look, &sum);
	for (unsigned int nr = 0; nr < FLEXSC_COUNTERS_CALLS; nr++) {
		calls[nr] = sum.calls[nr];
		if (!calls[nr] && look->made && nr < FLEXSC_TRACE_CALLS)
			calls[nr] = look->made[nr];
	}
}

const struct seen_carrier *stat_carrier(const struct look *look, pid_t tid)
{
	for (unsigned int i = 0; i < look->nr_carriers; i++)
		if (look->carriers[i].tid == tid)
			return &look->carriers[i];
	return NULL;
}

void stat_wait(const struct seen_thread *t, char *text, size_t size)
{
	const char *name = t->has_call ? flexsc_call_name(t->call.nr) : NULL;

	if (!name)
		name = *t->where ? t->where : "?";
	/* Of most calls that wait the first argument is a descriptor. */
	if (t->has_call && t->call.nr_args)
		snprintf(text, size, "%s(%d%s)", name, (int)t->call.args[0],
			 t->call.nr_args > 1 ? ", ..." : "");
	else if (t->on)
		snprintf(text, size, "%s %#lx", name, (unsigned long)t->on);
	else
		snprintf(text, size, "%s", name);
}

/* The command ----------------------------------------------------------------- */

enum {
	GLANCE_MS = 30,
	TOTALS_MS = 10000, /* about so often somebody asks for totals */
};

struct options {
	pid_t pid;
	bool json, prometheus, repeat;
	double interval;
	unsigned long count;
};

static const struct argp_option argp_options[] = {
	{ "count", 'c', "N", 0, "End after N times", 0 },
	{ "interval", 'i', "SECONDS", 0,
	  "Go on, and say every so often what went on since (once, over a second)",
	  0 },
	{ "json", 'j', NULL, 0, "One JSON object a line", 0 },
	{ "prometheus", 'p', NULL, 0,
	  "Totals in Prometheus' text form, at once", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	char *end;

	switch (key) {
	case 'c':
		o->count = strtoul(arg, &end, 10);
		if (*end || !o->count)
			argp_error(state, "'%s' is no number of times", arg);
		return 0;
	case 'i':
		o->interval = strtod(arg, &end);
		o->repeat = true;
		if (*end || !(o->interval >= 0.01 && o->interval <= 86400))
			argp_error(state,
				   "'%s' is no interval: 0.01 to 86400 "
				   "seconds",
				   arg);
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'p':
		o->prometheus = true;
		return 0;
	case ARGP_KEY_ARG:
		o->pid = (pid_t)strtol(arg, &end, 10);
		if (state->arg_num || *end || o->pid <= 0)
			argp_error(state, "'%s' is no process id", arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->pid)
			argp_error(state, "which process?");
		if (o->json && o->prometheus)
			argp_error(state,
				   "--json and --prometheus are two forms");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "PID",
	.doc = "What a process that uses FlexSC is doing."
	       "\v"
	       "The process is not stopped and does nothing for it: its memory is "
	       "read. Rates are of the time between two looks, all other numbers "
	       "since the process began.",
};

static void wait_until(struct timespec *at, double seconds)
{
	double whole = floor(seconds);

	at->tv_sec += (time_t)whole;
	at->tv_nsec += (long)((seconds - whole) * 1e9);
	if (at->tv_nsec >= 1000000000) {
		at->tv_nsec -= 1000000000;
		at->tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, at, NULL) ==
	       EINTR)
		;
}

/* How many calls it makes is to be known before it is asked to time them. */
static int glance(struct observed *observed)
{
	const struct timespec time = { 0, GLANCE_MS * 1000000 };
	struct look look;
	int bad = observe_look(observed, &look);

	look_free(&look);
	if (!bad)
		nanosleep(&time, NULL);
	return bad;
}

static int tell(const struct options *o, struct observed *observed)
{
	struct look before, now;
	struct timespec at;
	int bad = glance(observed);

	clock_gettime(CLOCK_MONOTONIC, &at);
	if (bad)
		return bad;
	bad = observe_look(observed, &before);
	if (!bad && o->prometheus && !o->repeat) {
		stat_prometheus(stdout, observed, &before);
		look_free(&before);
		return 0;
	}
	for (unsigned long n = 0; !bad && (!o->count || n < o->count); n++) {
		wait_until(&at, o->interval);
		bad = observe_look(observed, &now);
		if (!bad && o->prometheus)
			stat_prometheus(stdout, observed, &now);
		else if (!bad && o->json)
			stat_json(stdout, observed, &before, &now);
		else if (!bad)
			stat_print(stdout, observed, &before, &now);
		fflush(stdout);
		look_free(&before);
		before = now;
	}
	look_free(&before);
	return bad;
}

int stat_main(int argc, char **argv)
{
	struct options o = { .interval = 1 };
	char why[OBSERVE_REASON];
	struct observed *observed;
	int bad;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (!o.repeat && !o.count)
		o.count = 1;
	observed = observe_new(o.pid, why);
	if (!observed) {
		fprintf(stderr, "flexsc stat: %d: %s\n", (int)o.pid, why);
		return 1;
	}
	if (*observed->declined)
		fprintf(stderr,
			"flexsc stat: %d (%s) runs without FlexSC-Threads: %s\n",
			(int)o.pid, observed->program, observed->declined);
	observed->interval_ms = o.prometheus && !o.repeat ?
					TOTALS_MS :
					(uint32_t)(o.interval * 1000);
	observed->latency_ms = observed->interval_ms * 5 / 4 + 100;
	bad = tell(&o, observed);
	if (bad)
		fprintf(stderr,
			"flexsc stat: %d (%s) has ended, or become another "
			"program\n",
			(int)o.pid, observed->program);
	observe_free(observed);
	return bad ? 1 : 0;
}

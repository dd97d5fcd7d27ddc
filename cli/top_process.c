/* SPDX-License-Identifier: MIT */
/* One process in `flexsc top`. */
#include "cli/stat.h"
#include "cli/top.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <flexsc.h>

enum {
	LINE = 512,
	WAIT = 64
};

const char *const order_names[NR_ORDERS] = {
	[ORDER_STATE] = "state",
	[ORDER_TIME] = "time",
	[ORDER_WAIT] = "wait",
	[ORDER_TID] = "thread",
};

void screen_line(struct screen *screen, enum accent accent, const char *format,
		 ...)
{
	char text[LINE];
	va_list rest;

	if (screen->line >= screen->height)
		return;
	va_start(rest, format);
	vsnprintf(text, sizeof(text), format, rest);
	va_end(rest);
	if (screen->width < LINE)
		text[screen->width] = '\0';
	screen->write(screen->line++, text, accent);
}

/* The head ---------------------------------------------------------------- */

static double seconds_between(const struct look *before, const struct look *now)
{
	return (double)(now->at_ns - before->at_ns) / 1e9;
}

static void head(struct screen *s, const struct observed *observed,
		 const struct look *before, const struct look *now)
{
	double seconds = seconds_between(before, now), homes = 0;
	unsigned int nr[NR_DOINGS];
	struct sum a, b;

	stat_sum(before, &a);
	stat_sum(now, &b);
	stat_doings(now, nr);
	for (unsigned int i = 0;
	     now->homes && before->homes && i < observed->nr_reasons; i++)
		homes += stat_rate(before->homes[i], now->homes[i], seconds);
	screen_line(s, ACCENT_TITLE, "%s (%d)  %s, engine %s",
		    observed->program, (int)observed->pid,
		    now->has_threads ? "FlexSC-Threads" : "libflexsc",
		    *b.engine ? b.engine : "none");
	screen_line(s, ACCENT_NONE,
		    "Calls    %.0f/s: %.0f at once, %.0f waited; "
		    "%.1f a batch; %.0f cancelled",
		    stat_rate(a.completed, b.completed, seconds),
		    stat_rate(a.at_once, b.at_once, seconds),
		    stat_rate(a.parked, b.parked, seconds),
		    b.batches ? (double)b.batch_calls / (double)b.batches : 0,
		    stat_rate(a.cancelled, b.cancelled, seconds));
	if (now->has_threads)
		screen_line(
			s, ACCENT_NONE,
			"Threads  %u: %u running, %u ready, %u parked, %u at "
			"home; %.0f goings home a second",
			now->nr_threads - nr[DOING_NOTHING], nr[DOING_RUNS],
			nr[DOING_READY], nr[DOING_PARKED], nr[DOING_HOME],
			homes);
}

/* Carriers ---------------------------------------------------------------- */

static const char *carrier_does(const struct look *now,
				const struct seen_carrier *c,
				const struct seen_carrier *was)
{
	const struct seen_queue *q = c->queue < 0 ? NULL :
						    &now->queues[c->queue];

	if (!q)
		return c->state == 'S' ? "spare" : "relieved";
	if (q->rests)
		return "rests";
	if (q->sleeps)
		return "asleep";
	if (was && was->switches == c->switches)
		return c->state == 'R' ? "one thread" : "blocked";
	return "busy";
}

static void carriers(struct screen *s, const struct look *before,
		     const struct look *now)
{
	double seconds = seconds_between(before, now);

	screen_line(s, ACCENT_HEAD, "%8s %9s %-10s %6s %6s %12s", "CARRIER",
		    "PROCESSOR", "DOES", "BUSY%", "READY", "SWITCHES/S");
	for (unsigned int i = 0; i < now->nr_carriers; i++) {
		const struct seen_carrier *c = &now->carriers[i];
		const struct seen_carrier *was = stat_carrier(before, c->tid);
		const struct seen_queue *q =
			c->queue < 0 ? NULL : &now->queues[c->queue];
		char cpu[16] = "-", ready[24] = "-";

		if (q)
			snprintf(cpu, sizeof(cpu), "%d", q->cpu);
		if (q)
			snprintf(ready, sizeof(ready), "%lu", q->ready);
		screen_line(
			s, ACCENT_NONE, "%8d %9s %-10s %6.0f %6s %12.0f",
			(int)c->tid, cpu, carrier_does(now, c, was),
			was ? 100 * stat_rate(was->cpu_ns, c->cpu_ns, seconds) /
					1e9 :
			      0,
			ready,
			was ? stat_rate(was->switches, c->switches, seconds) :
			      0);
	}
}

/* Calls ------------------------------------------------------------------- */

struct rate {
	unsigned int nr;
	double rate;
	uint64_t total;
};

static int by_rate(const void *a, const void *b)
{
	const struct rate *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	return (x->total < y->total) - (x->total > y->total);
}

static void calls(struct screen *s, const struct look *before,
		  const struct look *now, unsigned int first)
{
	double seconds = seconds_between(before, now);
	struct rate rates[FLEXSC_COUNTERS_CALLS];
	struct sum a, b;
	unsigned int nr = 0;

	stat_calls(before, a.calls);
	stat_calls(now, b.calls);
	for (unsigned int i = 0; i < FLEXSC_COUNTERS_CALLS; i++)
		if (b.calls[i])
			rates[nr++] = (struct rate){
				i, stat_rate(a.calls[i], b.calls[i], seconds),
				b.calls[i]
			};
	qsort(rates, nr, sizeof(*rates), by_rate);
	screen_line(s, ACCENT_HEAD, "%-20s %14s %18s %10s %10s", "CALL",
		    "A SECOND", "SO FAR", "LATENCY", "99 % IN");
	for (unsigned int i = first; i < nr; i++) {
		const char *name = flexsc_call_name(rates[i].nr);
		struct duration l = stat_latency(before, now, rates[i].nr);
		char mean[16], most[16];

		duration_text(l.mean, mean);
		duration_text(l.most_99, most);
		screen_line(s, ACCENT_NONE, "%-20s %14.0f %18lu %10s %10s",
			    name ? name : "?", rates[i].rate, rates[i].total,
			    mean, most);
	}
}

/* Threads ----------------------------------------------------------------- */

/* For how long it has been so, as 12 ms, 3.4 s, 5 min, 2.1 h. */
static void duration(uint32_t ms, char text[16])
{
	if (ms < 1000)
		snprintf(text, 16, "%u ms", ms);
	else if (ms < 100 * 1000)
		snprintf(text, 16, "%.1f s", ms / 1e3);
	else if (ms < 100 * 60 * 1000)
		snprintf(text, 16, "%.0f min", ms / 6e4);
	else
		snprintf(text, 16, "%.1f h", ms / 3.6e6);
}

static int by_state(const struct seen_thread *x, const struct seen_thread *y)
{
	static const int rank[NR_DOINGS] = { [DOING_RUNS] = 0,
					     [DOING_READY] = 1,
					     [DOING_HOME] = 2,
					     [DOING_PARKED] = 3,
					     [DOING_NOTHING] = 4 };

	if (x->doing != y->doing)
		return rank[x->doing] - rank[y->doing];
	return (x->for_ms > y->for_ms) - (x->for_ms < y->for_ms);
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct seen_thread *x = *(struct seen_thread *const *)a;
	const struct seen_thread *y = *(struct seen_thread *const *)b;
	int found = 0;

	switch (*(enum order *)arg) {
	case ORDER_STATE:
		found = by_state(x, y);
		break;
	case ORDER_TIME:
		found = (x->for_ms < y->for_ms) - (x->for_ms > y->for_ms);
		break;
	case ORDER_WAIT:
		found = strcmp(x->where, y->where);
		if (!found)
			found = (x->on > y->on) - (x->on < y->on);
		break;
	default:
		break;
	}
	return found ? found : (x->tid > y->tid) - (x->tid < y->tid);
}

static void thread_line(struct screen *s, const struct seen_thread *t)
{
	char wait[WAIT] = "", time[16] = "";

	if (t->doing == DOING_PARKED) {
		stat_wait(t, wait, sizeof(wait));
		duration(t->for_ms, time);
	} else if (t->stays) {
		snprintf(wait, sizeof(wait), "stays: %s", t->stays);
	}
	screen_line(s, ACCENT_NONE, "%8d %-16s %-8s %9s  %s", (int)t->tid,
		    t->name, stat_doing_names[t->doing], time, wait);
}

static void threads(struct screen *s, const struct look *now, enum order order,
		    unsigned int first)
{
	struct seen_thread **list = calloc(now->nr_threads + 1, sizeof(*list));
	unsigned int nr = 0;

	screen_line(s, ACCENT_HEAD, "%8s %-16s %-8s %9s  %s", "THREAD", "NAME",
		    "STATE", "FOR", "WAITS FOR");
	for (unsigned int i = 0; list && i < now->nr_threads; i++)
		if (now->threads[i].doing != DOING_NOTHING)
			list[nr++] = &now->threads[i];
	if (list)
		qsort_r(list, nr, sizeof(*list), compare, &order);
	for (unsigned int i = first; i < nr && s->line < s->height; i++)
		thread_line(s, list[i]);
	free(list);
}

void top_process(struct screen *s, const struct observed *observed,
		 const struct look *before, const struct look *now,
		 enum view view, enum order order, unsigned int first)
{
	head(s, observed, before, now);
	screen_line(s, ACCENT_NONE, "%s", "");
	if (view == VIEW_CALLS || !now->has_threads)
		calls(s, before, now, first);
	else if (view == VIEW_CARRIERS)
		carriers(s, before, now);
	else
		threads(s, now, order, first);
}

/* SPDX-License-Identifier: MIT */
/* What `flexsc stat` says to people. */
#include "cli/stat.h"

#include <stdlib.h>
#include <string.h>

#include <flexsc.h>

enum {
	CALLS_SHOWN = 10,
	WAITS_SHOWN = 10,
	WAIT = 64
};

struct tally {
	const char *name;
	uint64_t total;
	double rate;
	unsigned int nr; /* of a call */
};

static int by_rate(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	return (x->total < y->total) - (x->total > y->total);
}

/* 12, 1,234, 1,234,567: @value without a fraction. */
static const char *grouped(double value, char text[32])
{
	char plain[32];
	int digits = snprintf(plain, sizeof(plain), "%.0f", value), at = 0;

	for (int i = 0; i < digits; i++) {
		if (i && (digits - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = plain[i];
	}
	text[at] = '\0';
	return text;
}

static double share(uint64_t part, uint64_t of)
{
	return of ? 100.0 * (double)part / (double)of : 0;
}

static void print_call(FILE *out, const struct tally *call, struct duration l)
{
	char rate[32], total[32], mean[16], most[16];

	fprintf(out, "  %-16s %12s a second %16s",
		call->name ? call->name : "?", grouped(call->rate, rate),
		grouped((double)call->total, total));
	if (l.nr) {
		duration_text(l.mean, mean);
		duration_text(l.most_99, most);
		fprintf(out, "  %8s, 99 %% in %s", mean, most);
	}
	fputc('\n', out);
}

static void print_calls(FILE *out, const struct look *before,
			const struct look *now, double seconds)
{
	struct tally calls[FLEXSC_COUNTERS_CALLS];
	struct sum a, b;
	char text[32], total[32];
	unsigned int nr = 0;

	stat_sum(before, &a);
	stat_sum(now, &b);
	fprintf(out,
		"calls      %s a second (%s so far), engine %s; %.0f %% ended at "
		"once, %.0f %% waited for a descriptor\n",
		grouped(stat_rate(a.completed, b.completed, seconds), text),
		grouped((double)b.completed, total),
		*b.engine ? b.engine : "none", share(b.at_once, b.completed),
		share(b.parked, b.completed));
	if (b.batches)
		fprintf(out,
			"           %.1f completions a batch, %lu handed to syscall "
			"threads (%lu now), %lu cancelled\n",
			(double)b.batch_calls / (double)b.batches,
			b.handed_over, b.threads, b.cancelled);
	stat_calls(before, a.calls);
	stat_calls(now, b.calls);
	for (unsigned int i = 0; i < FLEXSC_COUNTERS_CALLS; i++)
		if (b.calls[i])
			calls[nr++] = (struct tally){
				flexsc_call_name(i), b.calls[i],
				stat_rate(a.calls[i], b.calls[i], seconds), i
			};
	qsort(calls, nr, sizeof(*calls), by_rate);
	for (unsigned int i = 0; i < nr && i < CALLS_SHOWN; i++)
		print_call(out, &calls[i],
			   stat_latency(before, now, calls[i].nr));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* What they wait for, the most frequent first. */
static void print_waits(FILE *out, const struct look *now)
{
	char(*names)[WAIT] = calloc(now->nr_threads + 1, sizeof(*names));
	struct tally *waits = calloc(now->nr_threads + 1, sizeof(*waits));
	unsigned int nr = 0, kinds = 0;

	for (unsigned int i = 0; names && i < now->nr_threads; i++)
		if (now->threads[i].doing == DOING_PARKED)
			snprintf(names[nr++], WAIT, "%s",
				 *now->threads[i].where ?
					 now->threads[i].where :
					 "?");
	if (names)
		qsort(names, nr, sizeof(*names), by_name);
	for (unsigned int i = 0; waits && i < nr; i++) {
		if (!i || strcmp(names[i], names[i - 1]) != 0)
			waits[kinds++].name = names[i];
		waits[kinds - 1].total++;
	}
	if (waits)
		qsort(waits, kinds, sizeof(*waits), by_rate);
	for (unsigned int i = 0; i < kinds && i < WAITS_SHOWN; i++)
		fprintf(out, "  parked for %-16s %8lu\n", waits[i].name,
			waits[i].total);
	free(waits);
	free(names);
}

static void print_threads(FILE *out, const struct observed *observed,
			  const struct look *now)
{
	unsigned int nr[NR_DOINGS];

	stat_doings(now, nr);
	fprintf(out, "threads    %u:", now->nr_threads - nr[DOING_NOTHING]);
	for (unsigned int i = 0; i < DOING_NOTHING; i++)
		fprintf(out, "%s %u %s", i ? "," : "", nr[i],
			stat_doing_names[i]);
	for (unsigned int i = 0;
	     now->thread_counts && i < observed->nr_thread_names; i++)
		fprintf(out, "%s %lu %s", i ? "," : "; so far",
			now->thread_counts[i], observed->thread_names[i]);
	fputc('\n', out);
	print_waits(out, now);
}

static void print_homes(FILE *out, const struct observed *observed,
			const struct look *before, const struct look *now,
			double seconds)
{
	bool any = false;

	for (unsigned int i = 0; now->homes && i < observed->nr_reasons; i++) {
		if (!now->homes[i] || !observed->reasons[i])
			continue;
		if (!any)
			fprintf(out, "gone home  ");
		fprintf(out, "%s%s %lu", any ? ", " : "", observed->reasons[i],
			now->homes[i]);
		if (before->homes && now->homes[i] > before->homes[i])
			fprintf(out, " (%.1f a second)",
				stat_rate(before->homes[i], now->homes[i],
					  seconds));
		any = true;
	}
	if (any)
		fputc('\n', out);
}

static void print_carriers(FILE *out, const struct look *before,
			   const struct look *now, double seconds)
{
	unsigned int spares = 0;
	char text[32];

	for (unsigned int i = 0; i < now->nr_carriers; i++)
		spares += now->carriers[i].queue < 0;
	fprintf(out, "carriers   %u, %u of them spare\n", now->nr_carriers,
		spares);
	for (unsigned int i = 0; i < now->nr_queues; i++) {
		const struct seen_queue *q = &now->queues[i];
		const struct seen_carrier *c =
			q->carrier < 0 ? NULL : &now->carriers[q->carrier];
		const struct seen_carrier *was =
			c ? stat_carrier(before, c->tid) : NULL;

		fprintf(out, "  processor %d: %lu ready, ", q->cpu, q->ready);
		if (!c) {
			fprintf(out, "no carrier (it is being relieved)\n");
			continue;
		}
		fprintf(out, "carrier %d %s", (int)c->tid,
			q->rests  ? "rests" :
			q->sleeps ? "sleeps" :
			was && was->switches == c->switches && before != now ?
				    "in one thread all the time" :
				    "runs");
		if (was && before != now)
			fprintf(out, ", %.0f %% busy, %s switches a second",
				100 *
					stat_rate(was->cpu_ns, c->cpu_ns,
						  seconds) /
					1e9,
				grouped(stat_rate(was->switches, c->switches,
						  seconds),
					text));
		fputc('\n', out);
	}
}

void stat_print(FILE *out, const struct observed *observed,
		const struct look *before, const struct look *now)
{
	double seconds = (double)(now->at_ns - before->at_ns) / 1e9;

	fprintf(out, "%s (%d), %s, over %.1f s\n", observed->program,
		(int)observed->pid,
		now->has_threads ? "on FlexSC-Threads" : "uses libflexsc",
		seconds);
	print_calls(out, before, now, seconds);
	if (!now->has_threads)
		return;
	print_threads(out, observed, now);
	print_homes(out, observed, before, now, seconds);
	print_carriers(out, before, now, seconds);
}

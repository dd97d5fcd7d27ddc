/* SPDX-License-Identifier: MIT */
/*
 * A workload gives several figures at once; each goes to its own series, so
 * that all of them come from the same turns.
 */
#include "bench/figures.h"

#include "bench/machine.h"
#include "bench/report.h"

#include <math.h>
#include <string.h>

struct turn {
	const struct bench_options *options;
	const struct workload *what;
	enum runner runner;
	struct figure *figures;
	unsigned int nr;
};

static void note_value(const struct turn *t, const char *name, double value)
{
	for (unsigned int i = 0; i < t->nr; i++) {
		struct series *s = &t->figures[i].of[t->runner];

		if (strcmp(name, t->figures[i].key) == 0 &&
		    s->nr < BENCH_MAX_RUNS)
			s->samples[s->nr++] = value;
	}
}

static double run_once(void *arg)
{
	const struct turn *t = arg;
	struct child child;
	char name[64];
	double value;

	if (child_start(&child, t->what, t->runner, machine()->cpu_app,
			t->options->quick))
		return NAN;
	while (child_says(&child, name, &value))
		note_value(t, name, value);
	return child_stop(&child, false) ? 0 : NAN;
}

static void report_figure(const char *bench, double trip,
			  const struct figure *f)
{
	const struct series *nptl = &f->of[RUNNER_NPTL];
	const struct series *threads = &f->of[RUNNER_THREADS];
	struct report_row r = { .bench = bench,
				.label = f->label,
				.metric = f->metric,
				.unit = f->unit,
				.roundtrip_ns = trip };

	if (threads->nr)
		report_pair(r, threads, nptl);
	else
		report_pair(r, nptl, NULL);
}

void figures_run(const char *bench, const struct bench_options *options,
		 const struct workload *what, struct figure *figures,
		 unsigned int nr)
{
	struct turn turns[2];
	struct series all[2];
	double trip;

	report_progress("%s: %s", bench, what->name);
	for (int i = 0; i < 2; i++) {
		turns[i] = (struct turn){ .options = options,
					  .what = what,
					  .runner = (enum runner)i,
					  .figures = figures,
					  .nr = nr };
		all[i] = (struct series){ .name = runner_names[i],
					  .once = run_once,
					  .arg = &turns[i] };
		for (unsigned int j = 0; j < nr; j++)
			figures[j].of[i].name = runner_names[i];
	}
	trip = series_run(all, 2, options->runs);
	for (unsigned int j = 0; j < nr; j++)
		report_figure(bench, trip, &figures[j]);
	for (int i = 0; i < 2; i++)
		if (all[i].nr < options->runs)
			report_note(bench,
				    "%s: %u of %u turns of %s failed, "
				    "or it does not work here",
				    what->name, options->runs - all[i].nr,
				    options->runs, runner_names[i]);
}

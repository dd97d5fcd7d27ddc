/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `wsc`: the experiment of wrapped-system-call.txt, section 3.2.
 * 128 getpid() calls, carried out whenever a threshold of them was posted, in
 * elapsed time beside plain calls; and the break-even of the model beside the
 * one that was measured. The copying programs are in bench/wsc_copy.c.
 */
#include "bench/wsc.h"

#include "bench/machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	NR_CALLS = 128,
	NR_THRESHOLDS = 6,
	REPEAT = 16,
	REPEAT_QUICK = 2
};

static const unsigned int thresholds[NR_THRESHOLDS] = { 1, 2, 4, 8, 16, 32 };
static struct flexsc_event events[NR_CALLS];
static unsigned int nr_done;

static void done(struct flexsc_event *ev)
{
	nr_done++;
}

struct attempt {
	struct flexsc_loop *loop;
	unsigned int threshold, repeat;
};

static double run_plain(void *arg)
{
	const struct attempt *a = arg;
	unsigned int nr = NR_CALLS * a->repeat;
	uint64_t begin = ticks();

	for (unsigned int i = 0; i < nr; i++)
		syscall(SYS_getpid);
	return ticks_ns(ticks() - begin, 1) / nr;
}

static double run_posted(void *arg)
{
	const struct attempt *a = arg;
	uint64_t begin;

	flexsc_loop_use(a->loop);
	begin = ticks();
	for (unsigned int i = 0; i < a->repeat; i++) {
		for (unsigned int j = 0; j < NR_CALLS; j++) {
			flexsc_post(&events[j], SYS_getpid, 0, 0, 0, 0, 0, 0);
			if ((j + 1) % a->threshold == 0)
				loop_finish(a->loop, &nr_done, a->threshold);
		}
	}
	return ticks_ns(ticks() - begin, 1) / (NR_CALLS * a->repeat);
}

/*
 * What the library adds to a call, T_gen + T_sche + T_sync + T_req of the
 * model: posting, and reaping without waiting. An engine on this core does
 * the call itself in that time, which is taken off.
 */
static double run_overhead(void *arg)
{
	const struct attempt *a = arg;
	uint64_t begin, sum = 0;
	double body = cost_getppid_ns() - cost_crossing_ns();
	bool here;

	flexsc_loop_use(a->loop);
	here = strcmp(flexsc_loop_engine(a->loop), "uthread") != 0;
	for (unsigned int i = 0; i < a->repeat; i++) {
		begin = ticks();
		for (unsigned int j = 0; j < NR_CALLS; j++)
			flexsc_post(&events[j], SYS_getpid, 0, 0, 0, 0, 0, 0);
		sum += ticks() - begin;
		if (!here)
			spin_ns(NR_CALLS * 400);
		begin = ticks();
		loop_finish(a->loop, &nr_done, NR_CALLS);
		sum += ticks() - begin;
	}
	return fmax(ticks_ns(sum, 2 * a->repeat) / (NR_CALLS * a->repeat) -
			    (here ? body : 0),
		    0);
}

/* "pays from M", or infinity: never. (equation 5) */
static double predict(double t_sys, double overhead)
{
	return t_sys > overhead ? floor(t_sys / (t_sys - overhead)) + 1 :
				  INFINITY;
}

static void report_break_even(const struct engine_loop *l, unsigned int repeat,
			      unsigned int runs, double measured)
{
	struct attempt a = { .loop = l->loop, .repeat = repeat };
	struct series overhead = { .name = l->name,
				   .once = run_overhead,
				   .arg = &a };
	double t_sys = cost_crossing_ns(), predicted;
	struct report_row r = { .bench = "wsc",
				.label = "getpid",
				.metric = "library's overhead",
				.unit = "ns/call",
				.rival = "crossing",
				.rival_value = t_sys };

	r.roundtrip_ns = series_run(&overhead, 1, runs);
	r.engine = l->name;
	r.value = series_median(&overhead);
	r.spread = series_spread(&overhead);
	r.runs = overhead.nr;
	report_row(&r);
	predicted = predict(t_sys, r.value);
	r.metric = "break-even";
	r.unit = "calls";
	r.rival = "model (eq. 5)";
	r.rival_value = predicted;
	r.value = measured;
	report_row(&r);
	if (isinf(predicted) || isinf(measured))
		report_note("wsc",
			    "%s: break-even %s by the model, %s when "
			    "measured",
			    l->name, isinf(predicted) ? "never" : "possible",
			    isinf(measured) ? "never (thresholds up to 32)" :
					      "reached");
}

static void run_getpid(const struct bench_options *o,
		       const struct engine_loop *l)
{
	unsigned int repeat = o->quick ? REPEAT_QUICK : REPEAT;
	double measured = INFINITY;

	for (int i = 0; i < NR_THRESHOLDS; i++) {
		struct attempt a = { l->loop, thresholds[i], repeat };
		struct series all[2] = {
			{ .name = "plain call", .once = run_plain, .arg = &a },
			{ .name = l->name, .once = run_posted, .arg = &a },
		};
		struct report_row r = { .bench = "wsc",
					.metric = "elapsed",
					.unit = "ns/call" };
		char label[32];

		snprintf(label, sizeof(label), "getpid/%u", thresholds[i]);
		r.label = label;
		report_progress("wsc: %s, %s", label, l->name);
		r.roundtrip_ns = series_run(all, 2, o->runs);
		report_pair(r, &all[1], &all[0]);
		/* From which one on it always wins: one alone may be luck. */
		if (series_median(&all[1]) >= series_median(&all[0]))
			measured = INFINITY;
		else if (isinf(measured))
			measured = thresholds[i];
	}
	report_break_even(l, repeat, o->runs, measured);
}

static int run(const struct bench_options *o)
{
	struct engine_loop loops[NR_ENGINES];
	unsigned int nr;
	int bad = 0;

	for (int i = 0; i < NR_CALLS; i++)
		events[i].handler = done;
	nr = loops_open(loops, o->engine);
	for (unsigned int i = 0; i < nr; i++) {
		run_getpid(o, &loops[i]);
		bad |= wsc_copy(o, &loops[i]);
	}
	loops_close(loops, nr);
	return bad || !nr;
}

const struct bench bench_wsc = {
	.name = "wsc",
	.summary = "the Wrapped System Call experiment, with its model",
	.cases = "getpid / calls carried out at once; cp, a program of the "
		 "paper and what of it was timed",
	.run = run,
};

/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `pollution`: how much slower user code runs because of system
 * calls between its stretches (flexsc-osdi10.txt, 2.2, figure 2, without
 * counters). Only the user code's own time counts, not the calls': what is
 * seen is the caches and predictors that the kernel left behind. Plain calls
 * beside calls posted to the engine uthread, both against the same code
 * without calls.
 */
#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LINE = 64,
	STEP_INSTRUCTIONS = 8,
	IN_FLIGHT = 64,
	WRITE_SIZE = 512,
	TOTAL_INSTRUCTIONS = 8000000,
	TOTAL_QUICK = 200000,
	MAX_STRETCHES = TOTAL_INSTRUCTIONS / 2000
};

/* One line of the working set; its order is a random circle. */
struct line {
	struct line *next;
	uint64_t value;
	char rest[LINE - 16];
};

static struct flexsc_event events[IN_FLIGHT];
static unsigned int nr_in_flight;
static struct scratch scratch;
static char path[96], data[WRITE_SIZE];
static int file_fd;

static void done(struct flexsc_event *ev)
{
	nr_in_flight--;
}

static void plain_pwrite(void)
{
	if (pwrite(file_fd, data, sizeof(data), 0) < 0)
		abort();
}

static void post_pwrite(struct flexsc_event *ev)
{
	flexsc_pwrite(ev, file_fd, data, sizeof(data), 0);
}

static void plain_open_close(void)
{
	open_close_plain(path);
}

static void post_open_close(struct flexsc_event *ev)
{
	open_close_post(ev, path);
}

static const struct op {
	const char *name;
	void (*plain)(void);
	void (*post)(struct flexsc_event *ev);
} ops[] = {
	{ "pwrite", plain_pwrite, post_pwrite },
	{ "open+close", plain_open_close, post_open_close },
};

/**
 * struct work - one case
 * @at:   where the walk goes on
 * @loop: for the posted calls
 */
struct work {
	const struct op *op;
	struct line *at;
	struct flexsc_loop *loop;
	unsigned int steps, nr_stretches;
};

static struct line *walk(struct line *at, uint64_t steps)
{
	uint64_t a = 1, b = 2;

	__asm__ volatile("1:\n\t"
			 "add 8(%0), %1\n\t"
			 "mov (%0), %0\n\t"
			 "xor %1, %2\n\t"
			 "add %2, %1\n\t"
			 "rol $7, %2\n\t"
			 "sub $3, %1\n\t"
			 "dec %3\n\t"
			 "jnz 1b"
			 : "+r"(at), "+r"(a), "+r"(b), "+r"(steps)
			 :
			 : "cc", "memory");
	return at;
}

/*
 * The mean of the middle half of the stretches' own times: on a busy machine
 * some stretches hold another process's time slice. @between runs outside the clock.
 */
static double run_stretches(struct work *w, void (*between)(struct work *w))
{
	static double times[MAX_STRETCHES];

	for (unsigned int i = 0; i < w->nr_stretches; i++) {
		uint64_t begin = ticks();

		w->at = walk(w->at, w->steps);
		times[i] = ticks_ns(ticks() - begin, 1);
		if (between)
			between(w);
	}
	return middle_mean(times, w->nr_stretches);
}

static double run_alone(void *arg)
{
	return run_stretches(arg, NULL);
}

static void between_plain(struct work *w)
{
	w->op->plain();
}

static double run_plain(void *arg)
{
	return run_stretches(arg, between_plain);
}

static void between_posted(struct work *w)
{
	static unsigned int next;
	struct flexsc_event *ev = &events[next++ % IN_FLIGHT];

	while (flexsc_pending(ev))
		flexsc_loop_poll(w->loop, 0);
	nr_in_flight++;
	w->op->post(ev);
	if (next % 16 == 0)
		flexsc_loop_poll(w->loop, 0);
}

static double run_posted(void *arg)
{
	struct work *w = arg;
	double ns;

	flexsc_loop_use(w->loop);
	ns = run_stretches(w, between_posted);
	while (nr_in_flight)
		flexsc_loop_poll(w->loop, -1);
	return ns;
}

/* A circle through all lines in random order, so that no prefetcher helps. */
static struct line *working_set_new(unsigned int kilobytes)
{
	unsigned int nr = kilobytes * 1024 / sizeof(struct line), seed = 1;
	struct line *lines = aligned_alloc(4096, nr * sizeof(*lines));
	unsigned int *order = malloc(nr * sizeof(*order));

	if (!lines || !order)
		abort();
	for (unsigned int i = 0; i < nr; i++)
		order[i] = i;
	for (unsigned int i = nr - 1; i > 0; i--) {
		unsigned int j = (unsigned int)rand_r(&seed) % (i + 1);
		unsigned int other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
	for (unsigned int i = 0; i < nr; i++) {
		lines[order[i]].next = &lines[order[(i + 1) % nr]];
		lines[order[i]].value = i;
	}
	free(order);
	return lines;
}

static void run_case(const struct bench_options *o, unsigned int kilobytes,
		     unsigned int k, struct work *w)
{
	struct series all[3] = {
		{ .name = "no calls", .once = run_alone, .arg = w },
		{ .name = "plain", .once = run_plain, .arg = w },
		{ .name = "uthread", .once = run_posted, .arg = w },
	};
	struct report_row r = { .bench = "pollution",
				.metric = "user slowdown",
				.unit = "times" };
	unsigned int total = o->quick ? TOTAL_QUICK : TOTAL_INSTRUCTIONS;
	char label[64];

	snprintf(label, sizeof(label), "%s/%u KB/%u", w->op->name, kilobytes,
		 k);
	report_progress("pollution: %s", label);
	w->steps = k / STEP_INSTRUCTIONS;
	w->nr_stretches = total / k;
	run_alone(w);
	r.label = label;
	r.roundtrip_ns = series_run(all, w->loop ? 3 : 2, o->runs);
	/* Each turn by itself: the machine's speed differs between turns. */
	for (int i = 1; i < 3; i++)
		for (unsigned int j = 0; j < all[i].nr; j++)
			all[i].samples[j] /= all[0].samples[j];
	if (w->loop)
		report_pair(r, &all[2], &all[1]);
	else
		report_pair(r, &all[1], NULL);
}

static int run(const struct bench_options *o)
{
	static const unsigned int sets[] = { 24, 40, 512 };
	static const unsigned int every[] = { 2000,  5000,  10000,
					      20000, 50000, 100000 };
	struct engine_loop loop = { 0 };

	file_fd = scratch_open(&scratch, O_RDWR, path, sizeof(path));
	if (file_fd < 0)
		return 1;
	for (int i = 0; i < IN_FLIGHT; i++)
		events[i].handler = done;
	if (!loops_open(&loop, "uthread"))
		report_note("pollution", "engine uthread does not work here: "
					 "plain calls only");
	for (int s = 0; s < 3; s++) {
		struct line *lines = working_set_new(sets[s]);

		for (int op = 0; op < 2; op++)
			for (int k = 0; k < 6; k++)
				run_case(o, sets[s], every[k],
					 &(struct work){ .op = &ops[op],
							 .at = lines,
							 .loop = loop.loop });
		free(lines);
	}
	if (loop.loop)
		loops_close(&loop, 1);
	close(file_fd);
	scratch_free(&scratch);
	return 0;
}

const struct bench bench_pollution = {
	.name = "pollution",
	.summary = "how much calls slow down the user code between them",
	.cases = "call / working set / instructions between two calls",
	.run = run,
};

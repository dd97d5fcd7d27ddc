/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `call`: what a system call costs the application's core, in
 * batches, on every engine, beside the plain call. The definition of
 * application-core time is in --help; for `uthread` the wait between posting
 * and reaping is left out and made just long enough.
 */
#include "bench/count.h"
#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_BATCH 256
#define NR_CALLS 4096
/* For one sample on a machine that is busy. */
#define BUDGET_NS 30000000u
#define MIN_BATCHES 8
#define NR_PROBES 9
#define SIZE 64

static struct flexsc_event events[MAX_BATCH];
static char buffers[MAX_BATCH][SIZE];
static struct stat stats[MAX_BATCH];
static struct scratch scratch;
static char path[96];
static int file_fd, sockets[2];
static unsigned int nr_done;
static long nr_bad;

static void done(struct flexsc_event *ev)
{
	nr_done++;
	nr_bad += ev->ret < 0;
}

/* The calls, plain and posted; a pair of calls is posted as a chain. */
static void plain_getppid(unsigned int i)
{
	getppid();
}

static void post_getppid(unsigned int i)
{
	flexsc_post(&events[i], SYS_getppid, 0, 0, 0, 0, 0, 0);
}

static void plain_pread(unsigned int i)
{
	nr_bad += pread(file_fd, buffers[i], SIZE, 0) < 0;
}

static void post_pread(unsigned int i)
{
	flexsc_pread(&events[i], file_fd, buffers[i], SIZE, 0);
}

static void plain_stat(unsigned int i)
{
	nr_bad += stat(path, &stats[i]) < 0;
}

static void post_stat(unsigned int i)
{
	flexsc_stat(&events[i], path, &stats[i]);
}

static void plain_open_close(unsigned int i)
{
	open_close_plain(path);
}

static void post_open_close(unsigned int i)
{
	open_close_post(&events[i], path);
}

static void plain_socket(unsigned int i)
{
	nr_bad += write(sockets[0], buffers[i], SIZE) < 0;
	nr_bad += read(sockets[1], buffers[i], SIZE) < 0;
}

static void post_socket(unsigned int i)
{
	flexsc_chain_begin();
	flexsc_write(NULL, sockets[0], buffers[i], SIZE);
	flexsc_read(&events[i], sockets[1], buffers[i], SIZE);
	flexsc_chain_end();
}

static const struct op {
	const char *name;
	void (*plain)(unsigned int i);
	void (*post)(unsigned int i);
} ops[] = {
	{ "getppid", plain_getppid, post_getppid },
	{ "pread", plain_pread, post_pread },
	{ "stat", plain_stat, post_stat },
	{ "open+close", plain_open_close, post_open_close },
	{ "socketpair", plain_socket, post_socket },
};

/* One contestant in one case. */
struct attempt {
	const struct op *op;
	struct flexsc_loop *loop; /* NULL: plain */
	unsigned int batch, nr_batches;
	bool elsewhere; /* a thread on another core carries the calls out */
};

static double run_plain(void *arg)
{
	const struct attempt *a = arg;
	unsigned int nr = a->batch * a->nr_batches;
	uint64_t begin = ticks();

	for (unsigned int i = 0; i < nr; i++)
		a->op->plain(i % MAX_BATCH);
	return ticks_ns(ticks() - begin, 1) / nr;
}

/* On this core: all time counts. */
static double run_here(struct attempt *a)
{
	uint64_t begin = ticks();

	for (unsigned int i = 0; i < a->nr_batches; i++) {
		for (unsigned int j = 0; j < a->batch; j++)
			a->op->post(j);
		loop_finish(a->loop, &nr_done, a->batch);
	}
	return ticks_ns(ticks() - begin, 1) / (a->batch * a->nr_batches);
}

/*
 * How long a batch takes on the other core. Waiting much longer than that
 * would let the syscall thread fall asleep, and waking it would be measured.
 */
static double find_wait_ns(const struct attempt *a)
{
	double waits[NR_PROBES];

	for (int i = 0; i < NR_PROBES; i++) {
		unsigned int wanted = nr_done + a->batch;
		uint64_t begin;

		for (unsigned int j = 0; j < a->batch; j++)
			a->op->post(j);
		begin = ticks();
		while (nr_done != wanted)
			flexsc_loop_poll(a->loop, 0);
		waits[i] = ticks_ns(ticks() - begin, 1);
	}
	return 300 + 1.1 * median(waits, NR_PROBES);
}

/*
 * On another core: the mean of the batches' middle half. One that was not
 * complete after the wait counts with all its rounds, and the next ones wait
 * longer.
 */
static double run_elsewhere(const struct attempt *a)
{
	static double batches[NR_CALLS];
	double first_wait_ns = find_wait_ns(a), wait_ns = first_wait_ns;
	uint64_t end = now_ns() + BUDGET_NS;
	unsigned int n = 0;

	while (n < a->nr_batches && (n < MIN_BATCHES || now_ns() < end)) {
		unsigned int wanted = nr_done + a->batch, nr_polls = 0;
		uint64_t begin = ticks(), sum;

		for (unsigned int j = 0; j < a->batch; j++)
			a->op->post(j);
		sum = ticks() - begin;
		do {
			spin_ns(wait_ns);
			begin = ticks();
			flexsc_loop_poll(a->loop, 0);
			sum += ticks() - begin;
			nr_polls++;
		} while (nr_done != wanted);
		batches[n++] = ticks_ns(sum, nr_polls + 1) / a->batch;
		if (nr_polls > 1 && wait_ns < 4 * first_wait_ns)
			wait_ns *= 1.1;
	}
	return middle_mean(batches, n);
}

static double run_posted(void *arg)
{
	struct attempt *a = arg;

	flexsc_loop_use(a->loop);
	/* Wake everybody before the clock starts. */
	a->op->post(0);
	loop_finish(a->loop, &nr_done, 1);
	return a->elsewhere ? run_elsewhere(a) : run_here(a);
}

static void run_case(const struct bench_options *o, const struct op *op,
		     unsigned int batch, struct engine_loop *loops,
		     unsigned int nr_loops)
{
	struct series series[NR_ENGINES + 1] = { 0 };
	struct attempt attempts[NR_ENGINES + 1];
	unsigned int nr_calls = o->quick ? 512 : NR_CALLS;
	char label[32];
	double trip;

	snprintf(label, sizeof(label), "%s/%u", op->name, batch);
	if (o->only && strcmp(o->only, label) != 0)
		return;
	report_progress("call: %s", label);
	for (unsigned int i = 0; i <= nr_loops; i++) {
		attempts[i] = (struct attempt){
			.op = op,
			.batch = batch,
			.nr_batches = nr_calls / batch,
		};
		series[i].name = i ? loops[i - 1].name : "plain call";
		series[i].once = i ? run_posted : run_plain;
		series[i].arg = &attempts[i];
		if (!i)
			continue;
		attempts[i].loop = loops[i - 1].loop;
		attempts[i].elsewhere = !strcmp(loops[i - 1].name, "uthread") ||
					!strcmp(loops[i - 1].name, "kcore");
	}
	trip = series_run(series, nr_loops + 1, o->runs);
	for (unsigned int i = 1; i <= nr_loops; i++)
		report_pair((struct report_row){ .bench = "call",
						 .label = label,
						 .metric = "app-core time",
						 .unit = "ns/call",
						 .roundtrip_ns = trip },
			    &series[i], &series[0]);
}

static int run(const struct bench_options *o)
{
	static const unsigned int batches[] = { 1, 4, 16, 64, 256 };
	struct engine_loop loops[NR_ENGINES];
	unsigned int nr_loops;

	if (count_possible())
		return count_run(o);
	file_fd = scratch_open(&scratch, O_RDONLY, path, sizeof(path));
	if (file_fd < 0)
		return 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		sockets[0] = sockets[1] = -1;
	for (unsigned int i = 0; i < MAX_BATCH; i++)
		events[i].handler = done;
	nr_loops = loops_open(loops, o->engine);
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (unsigned int j = 0; j < 5; j++)
			run_case(o, &ops[i], batches[j], loops, nr_loops);
	loops_close(loops, nr_loops);
	close(file_fd);
	scratch_free(&scratch);
	if (nr_bad)
		fprintf(stderr, "flexsc: %ld calls failed\n", nr_bad);
	return nr_bad || !nr_loops;
}

const struct bench bench_call = {
	.name = "call",
	.summary = "application-core time of single calls, in batches",
	.cases = "call / calls in a batch",
	.run = run,
};

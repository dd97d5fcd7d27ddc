/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `call` where the clock counts instructions (tools/vm-run
 * --icount): how many a call takes, with everything from posting to reaping,
 * on each engine, beside the plain call and io_uring. What makes ready for a
 * batch (descriptors to close, bytes to receive) is not counted. A figure is
 * the median of its batches, so that interrupts of the machine do not count.
 */
#include "bench/count.h"

#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/mark.h"
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

#define NR_BATCHES 41
#define NR_WARM 10 /* of them: not for the profile */
#define PAUSES 20 /* another processor is given so many more, if it needs them */

static struct count_objects objects = { .file = -1, .zero = -1 };
static struct flexsc_event events[COUNT_MAX_BATCH];
static struct stat results[COUNT_MAX_BATCH];
static struct scratch scratch;
static char path[96];
static unsigned int nr_done;

/* A loop of so many instructions, and as few others as can be. */
static uint64_t ticks_of(uint64_t instructions)
{
	uint64_t rounds = instructions / 2, begin = ticks();

	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(rounds));
	return ticks() - begin;
}

bool count_possible(void)
{
	unsigned int good = 0;

	/* An interrupt may come in between. */
	for (int i = 0; i < 8; i++) {
		uint64_t found = ticks_of(20000) - ticks_of(10000);

		good += found == 10000;
	}
	return good >= 4;
}

static void done(struct flexsc_event *ev)
{
	nr_done++;
	objects.nr_bad += ev->ret < 0;
}

/* Before and after, uncounted ---------------------------------------------- */

static void move_byte(int from, int to)
{
	char *buffer = objects.buffers[0];

	if (from >= 0)
		objects.nr_bad += write(from, buffer, COUNT_SIZE) < 0;
	if (to >= 0)
		objects.nr_bad += read(to, buffer, COUNT_SIZE) < 0;
}

static void make_ready(enum count_call call, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (call == COUNT_CLOSE)
			objects.files[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (call == COUNT_RECV)
			move_byte(objects.pairs[i][0], -1);
	}
}

static void clear_away(enum count_call call, unsigned int nr, bool posted)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (call == COUNT_OPEN)
			close(posted ? (int)events[i].ret : objects.files[i]);
		if (call == COUNT_SEND)
			move_byte(-1, objects.pairs[i][1]);
	}
}

/* The calls ---------------------------------------------------------------- */

/* As tight as a program can have it: what is around a call counts, too. */
#define ALL(nr, call)                                \
	do {                                         \
		for (unsigned int i = 0; i < nr; i++) \
			call;                        \
	} while (0)
#define ALL_GOOD(nr, call) ALL(nr, objects.nr_bad += (call) < 0)

static void plain_waiting(unsigned int i)
{
	/* It does not: this is what it would cost. */
	move_byte(objects.pairs[i][0], -1);
	objects.nr_bad += recv(objects.pairs[i][1], objects.buffers[i],
			       COUNT_SIZE, 0) < 0;
}

static void all_plain(enum count_call call, unsigned int nr)
{
	struct count_objects *o = &objects;

	switch (call) {
	case COUNT_PREAD:
		ALL_GOOD(nr, pread(o->file, o->buffers[i], COUNT_SIZE, 0));
		break;
	case COUNT_READ:
		ALL_GOOD(nr, read(o->zero, o->buffers[i], COUNT_SIZE));
		break;
	case COUNT_STAT:
		ALL_GOOD(nr, stat(path, &results[i]));
		break;
	case COUNT_OPEN:
		ALL_GOOD(nr, o->files[i] = open(path, O_RDONLY | O_CLOEXEC));
		break;
	case COUNT_CLOSE:
		ALL_GOOD(nr, close(o->files[i]));
		break;
	case COUNT_WAITING:
		ALL(nr, plain_waiting(i));
		break;
	case COUNT_RECV:
		ALL_GOOD(nr,
			 recv(o->pairs[i][1], o->buffers[i], COUNT_SIZE, 0));
		break;
	case COUNT_SEND:
		ALL_GOOD(nr,
			 send(o->pairs[i][0], o->buffers[i], COUNT_SIZE, 0));
		break;
	default:
		ALL(nr, getppid());
	}
}

static void all_posted(enum count_call call, unsigned int nr)
{
	struct count_objects *o = &objects;
	struct flexsc_event *ev = events;

	switch (call) {
	case COUNT_PREAD:
		ALL(nr, flexsc_pread(&ev[i], o->file, o->buffers[i],
				     COUNT_SIZE, 0));
		break;
	case COUNT_READ:
		ALL(nr,
		    flexsc_read(&ev[i], o->zero, o->buffers[i], COUNT_SIZE));
		break;
	case COUNT_STAT:
		ALL(nr, flexsc_stat(&ev[i], path, &results[i]));
		break;
	case COUNT_OPEN:
		ALL(nr, flexsc_open(&ev[i], path, O_RDONLY | O_CLOEXEC, 0));
		break;
	case COUNT_CLOSE:
		ALL(nr, flexsc_close(&ev[i], o->files[i]));
		break;
	case COUNT_RECV:
	case COUNT_WAITING:
		ALL(nr, flexsc_recv(&ev[i], o->pairs[i][1], o->buffers[i],
				    COUNT_SIZE, 0));
		break;
	case COUNT_SEND:
		ALL(nr, flexsc_send(&ev[i], o->pairs[i][0], o->buffers[i],
				    COUNT_SIZE, 0));
		break;
	default:
		ALL(nr, flexsc_post(&ev[i], SYS_getppid, 0, 0, 0, 0, 0, 0));
	}
}

/* Contestants --------------------------------------------------------------- */

struct attempt {
	enum count_call call;
	unsigned int batch;
	struct flexsc_loop *loop; /* NULL: plain, or io_uring */
	bool uring;
	bool elsewhere; /* another processor makes the calls */
};

static void write_to_all(unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		move_byte(objects.pairs[i][0], -1);
}

static void batch_posted(const struct attempt *a)
{
	all_posted(a->call, a->batch);
	if (a->call == COUNT_WAITING) {
		flexsc_loop_poll(a->loop, 0);
		write_to_all(a->batch);
	}
	loop_finish(a->loop, &nr_done, a->batch);
}

/*
 * Posting, and reaping once all is done: what the application's processor has
 * to do. 0: it was not done by then.
 */
static uint64_t count_elsewhere(const struct attempt *a, bool marked)
{
	static int pauses = PAUSES; /* longer, and it would fall asleep */
	unsigned int wanted = nr_done + a->batch;
	uint64_t begin = ticks(), posting;

	if (marked)
		mark_begin();
	all_posted(a->call, a->batch);
	flexsc_loop_poll(a->loop, 0);
	if (marked)
		mark_end();
	posting = ticks() - begin;
	for (int i = 0; i < pauses; i++)
		_mm_pause();
	begin = ticks();
	if (marked)
		mark_begin();
	if (nr_done != wanted)
		flexsc_loop_poll(a->loop, 0);
	if (marked)
		mark_end();
	begin = ticks() - begin;
	if (nr_done == wanted)
		return posting + begin;
	pauses += PAUSES;
	loop_finish(a->loop, &nr_done, wanted - nr_done);
	return 0;
}

static void batch_uring(const struct attempt *a)
{
	count_uring_prepare(&objects, a->call, a->batch);
	if (a->call == COUNT_WAITING)
		write_to_all(a->batch);
	count_uring_finish(&objects, a->call, a->batch);
}

/* Instructions of one batch. */
static uint64_t count_batch(const struct attempt *a, bool marked)
{
	uint64_t begin = ticks();

	if (marked)
		mark_begin();
	if (a->loop)
		batch_posted(a);
	else if (a->uring)
		batch_uring(a);
	else
		all_plain(a->call, a->batch);
	if (marked)
		mark_end();
	return ticks() - begin;
}

static double count_once(void *arg)
{
	const struct attempt *a = arg;
	uint64_t nothing = ticks();
	double counts[NR_BATCHES];
	unsigned int nr = 0;

	nothing = ticks() - nothing;
	if (a->loop)
		flexsc_loop_use(a->loop);
	for (int i = 0; i < NR_BATCHES; i++) {
		uint64_t all;

		make_ready(a->call, a->batch);
		all = a->elsewhere ?
			      count_elsewhere(a, i >= NR_WARM) :
			      count_batch(a, a->loop && i >= NR_WARM);
		clear_away(a->call, a->batch, a->loop);
		if (all > nothing)
			counts[nr++] = (double)(all - nothing) / a->batch;
	}
	return median(counts, nr);
}

static const char *const names[NR_COUNT_CALLS] = {
	[COUNT_GETPPID] = "getppid", [COUNT_PREAD] = "pread",
	[COUNT_READ] = "read",	     [COUNT_STAT] = "stat",
	[COUNT_OPEN] = "open",	     [COUNT_CLOSE] = "close",
	[COUNT_RECV] = "recv",	     [COUNT_SEND] = "send",
	[COUNT_WAITING] = "waiting",
};

static void run_case(const struct bench_options *o, enum count_call call,
		     unsigned int batch, struct engine_loop *loops,
		     unsigned int nr_loops, bool uring)
{
	struct series series[NR_ENGINES + 2] = { 0 };
	struct attempt attempts[NR_ENGINES + 2] = { 0 };
	unsigned int nr = nr_loops + 1 + uring;
	char label[32];

	snprintf(label, sizeof(label), "%s/%u", names[call], batch);
	if (o->only && strcmp(o->only, label) != 0)
		return;
	for (unsigned int i = 0; i < nr; i++) {
		attempts[i].call = call;
		attempts[i].batch = batch;
		series[i].name = "plain call";
		series[i].once = count_once;
		series[i].arg = &attempts[i];
		if (i > nr_loops) {
			series[i].name = "liburing";
			attempts[i].uring = true;
		} else if (i) {
			series[i].name = loops[i - 1].name;
			attempts[i].loop = loops[i - 1].loop;
			attempts[i].elsewhere =
				call != COUNT_WAITING &&
				(strcmp(series[i].name, "kcore") == 0 ||
				 strcmp(series[i].name, "uthread") == 0);
		}
	}
	series_run(series, nr, o->runs);
	for (unsigned int i = 1; i < nr; i++)
		report_pair((struct report_row){ .bench = "call",
						 .label = label,
						 .metric = "instructions",
						 .unit = "a call" },
			    &series[i], &series[0]);
}

static int set_up(void)
{
	objects.file = scratch_open(&scratch, O_RDONLY, path, sizeof(path));
	if (objects.file < 0)
		return -1;
	objects.path = path;
	objects.zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	for (unsigned int i = 0; i < COUNT_MAX_BATCH; i++) {
		events[i].handler = done;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
			       objects.pairs[i]))
			objects.nr_bad++;
	}
	return 0;
}

int count_run(const struct bench_options *o)
{
	static const unsigned int batches[] = { 1, 2, 3, 4, 8, 32 };
	struct engine_loop loops[NR_ENGINES];
	unsigned int nr_loops;
	bool uring;

	if (set_up())
		return 1;
	nr_loops = loops_open(loops, o->engine);
	uring = !count_uring_init();
	for (enum count_call call = 0; call < NR_COUNT_CALLS; call++)
		for (unsigned int i = 0; i < 6; i++)
			run_case(o, call, batches[i], loops, nr_loops, uring);
	if (uring)
		count_uring_fini();
	loops_close(loops, nr_loops);
	scratch_free(&scratch);
	if (objects.nr_bad)
		fprintf(stderr, "flexsc: %ld calls failed\n", objects.nr_bad);
	return objects.nr_bad || !nr_loops;
}

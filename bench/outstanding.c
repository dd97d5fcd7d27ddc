/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `outstanding`: 100,000 reads wait on idle sockets. What does it
 * cost to look for completions, to take some, and to keep them all in memory?
 * Memory is the growth of the resident set while posting; events and buffers
 * were touched before, so they are not in it.
 */
#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	NR_READS = 100000,
	NR_READS_QUICK = 2000,
	NR_SPARE = 200, /* descriptors for everything else */
	NR_POLLS = 100000,
	COMPLETIONS = 1000,
	COMPLETION_WAIT_NS = 1000000,
	SETTLE_NS = 150000000
};

struct idle {
	unsigned int nr_reads, nr_sockets;
	int (*sockets)[2];
	struct flexsc_event *reads;
	char *bytes;
	int epoll;
};

/* What was measured of one engine; printed when all engines are done. */
struct figures {
	const char *engine;
	double posting, memory, threads, cancel, trip_poll, trip_completion;
	struct series polls[2], completions;
};

static struct flexsc_event quick[COMPLETIONS];
static unsigned int nr_done;

static void done(struct flexsc_event *ev)
{
	nr_done++;
}

static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static unsigned int nr_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned int nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

/* As many sockets as the limit of descriptors permits, in the epoll set too. */
static int idle_init(struct idle *idle, bool is_quick)
{
	struct rlimit limit = machine()->nofile;

	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	idle->nr_reads = is_quick ? NR_READS_QUICK : NR_READS;
	idle->nr_sockets = (unsigned int)(limit.rlim_cur - NR_SPARE) / 2;
	if (idle->nr_sockets > idle->nr_reads)
		idle->nr_sockets = idle->nr_reads;
	idle->sockets = calloc(idle->nr_sockets, sizeof(*idle->sockets));
	idle->reads = calloc(idle->nr_reads, sizeof(*idle->reads));
	idle->bytes = malloc(idle->nr_reads);
	idle->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!idle->sockets || !idle->reads || !idle->bytes || idle->epoll < 0)
		return -ENOMEM;
	memset(idle->bytes, 1, idle->nr_reads);
	for (unsigned int i = 0; i < idle->nr_reads; i++)
		idle->reads[i].handler = done;
	for (unsigned int i = 0; i < idle->nr_sockets; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
			       idle->sockets[i]))
			return -errno;
		epoll_ctl(idle->epoll, EPOLL_CTL_ADD, idle->sockets[i][0],
			  &event);
	}
	return 0;
}

static void idle_fini(struct idle *idle)
{
	for (unsigned int i = 0; i < idle->nr_sockets; i++) {
		close(idle->sockets[i][0]);
		close(idle->sockets[i][1]);
	}
	close(idle->epoll);
	free(idle->sockets);
	free(idle->reads);
	free(idle->bytes);
}

static double poll_empty(void *arg)
{
	uint64_t begin = ticks();

	for (int i = 0; i < NR_POLLS; i++)
		flexsc_loop_poll(arg, 0);
	return ticks_ns(ticks() - begin, 1) / NR_POLLS;
}

static double epoll_empty(void *arg)
{
	const struct idle *idle = arg;
	struct epoll_event events[64];
	uint64_t begin = ticks();

	for (int i = 0; i < NR_POLLS / 10; i++)
		epoll_wait(idle->epoll, events, 64, 0);
	return ticks_ns(ticks() - begin, 1) / (NR_POLLS / 10);
}

/* A thousand completions lie ready: rounds until all were taken. */
static double take_completions(void *arg)
{
	struct flexsc_loop *loop = arg;
	unsigned int wanted = nr_done + COMPLETIONS;
	uint64_t begin, taken;

	flexsc_loop_use(loop);
	for (int i = 0; i < COMPLETIONS; i++) {
		quick[i].handler = done;
		flexsc_post(&quick[i], SYS_getppid, 0, 0, 0, 0, 0, 0);
	}
	flexsc_loop_poll(loop, 0); /* wakes the syscall thread if it sleeps */
	wanted -= nr_done;
	spin_ns(COMPLETION_WAIT_NS);
	if (!wanted)
		return NAN;
	begin = ticks();
	loop_finish(loop, &nr_done, wanted);
	taken = ticks() - begin;
	return ticks_ns(taken, 1) / wanted;
}

static void post_all(struct idle *idle, struct figures *f,
		     struct flexsc_loop *loop)
{
	long before = resident_bytes();
	uint64_t begin = now_ns(), posted;

	flexsc_loop_use(loop);
	for (unsigned int i = 0; i < idle->nr_reads; i++)
		flexsc_read(&idle->reads[i],
			    idle->sockets[i % idle->nr_sockets][0],
			    &idle->bytes[i], 1);
	/* Until every one of them waits where it is going to wait. */
	posted = now_ns();
	while (now_ns() - posted < SETTLE_NS)
		flexsc_loop_poll(loop, SETTLE_NS / 10);
	f->posting = (double)(posted - begin) / idle->nr_reads;
	f->memory = (double)(resident_bytes() - before) / idle->nr_reads;
	f->threads = nr_threads();
}

static void run_engine(const struct bench_options *o, struct idle *idle,
		       struct figures *f, const struct engine_loop *l)
{
	uint64_t begin;

	f->engine = l->name;
	f->polls[0] = (struct series){ .name = l->name,
				       .once = poll_empty,
				       .arg = l->loop };
	f->polls[1] = (struct series){ .name = "epoll_wait",
				       .once = epoll_empty,
				       .arg = idle };
	f->completions = (struct series){ .name = l->name,
					  .once = take_completions,
					  .arg = l->loop };
	report_progress("outstanding: %s", l->name);
	post_all(idle, f, l->loop);
	f->trip_poll = series_run(f->polls, 2, o->runs);
	f->trip_completion = series_run(&f->completions, 1, 4 * o->runs);
	begin = now_ns();
	flexsc_loop_shutdown(l->loop);
	f->cancel = (double)(now_ns() - begin) / idle->nr_reads;
}

static void report_single(struct report_row r, const struct figures *all,
			  unsigned int nr, size_t offset)
{
	for (unsigned int i = 0; i < nr; i++) {
		r.engine = all[i].engine;
		r.value = *(const double *)((const char *)&all[i] + offset);
		r.runs = 1;
		r.rival_value = r.roundtrip_ns = NAN;
		report_row(&r);
	}
}

static void report_all(const char *label, const struct figures *all,
		       unsigned int nr)
{
	struct report_row r = { .bench = "outstanding", .label = label };

	r.metric = "posting";
	r.unit = "ns/call";
	report_single(r, all, nr, offsetof(struct figures, posting));
	r.metric = "memory";
	r.unit = "bytes/call";
	report_single(r, all, nr, offsetof(struct figures, memory));
	r.metric = "threads of the process";
	r.unit = "count";
	report_single(r, all, nr, offsetof(struct figures, threads));
	r.metric = "empty poll";
	r.unit = "ns/poll";
	for (unsigned int i = 0; i < nr; i++) {
		r.roundtrip_ns = all[i].trip_poll;
		report_pair(r, &all[i].polls[0], &all[i].polls[1]);
	}
	r.metric = "completion";
	r.unit = "ns/call";
	for (unsigned int i = 0; i < nr; i++) {
		r.roundtrip_ns = all[i].trip_completion;
		report_pair(r, &all[i].completions, NULL);
	}
	r.metric = "cancel all";
	report_single(r, all, nr, offsetof(struct figures, cancel));
}

static int run(const struct bench_options *o)
{
	static struct figures all[NR_ENGINES];
	struct idle idle = { 0 };
	char label[64];
	unsigned int nr = 0;
	int bad = idle_init(&idle, o->quick);

	if (bad) {
		fprintf(stderr, "flexsc: cannot make %u sockets: %s\n",
			2 * idle.nr_sockets, strerror(-bad));
		return 1;
	}
	snprintf(label, sizeof(label), "%u reads", idle.nr_reads);
	if (idle.nr_sockets < idle.nr_reads)
		report_note("outstanding",
			    "RLIMIT_NOFILE is %lu: %u sockets, "
			    "several reads on each",
			    (unsigned long)machine()->nofile.rlim_max,
			    idle.nr_sockets);
	/* One loop at a time: another one's memory is not this one's. */
	for (int i = 0; i < NR_ENGINES; i++) {
		struct engine_loop loop;

		/* Engine sync would wait for the first read for ever. */
		if (!engine_wanted(o->engine, i) ||
		    strcmp(engine_names[i], "sync") == 0 ||
		    !loops_open(&loop, engine_names[i]))
			continue;
		run_engine(o, &idle, &all[nr++], &loop);
		loops_close(&loop, 1);
	}
	report_all(label, all, nr);
	idle_fini(&idle);
	return !nr;
}

const struct bench bench_outstanding = {
	.name = "outstanding",
	.summary = "100,000 calls waiting: polling, memory, threads",
	.run = run,
};

/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `pipeline`: a stream of small requests on cached files with user
 * work in between, in requests a second. FlexSC posts each request as one
 * chain. The rivals that need a library are in files of their own.
 */
#include "bench/pipeline.h"

#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"
#include "bench/work.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_OURS = NR_ENGINES + 1, /* and auto */
	NR_RIVALS = 4
};

/* FlexSC ------------------------------------------------------------------ */

struct request {
	struct flexsc_event was_read;
	struct stat st;
	char buf[PIPELINE_READ];
};

struct ours {
	const struct pipeline_job *job;
	struct flexsc_loop *loop;
	unsigned int nr_started, nr_done;
	struct request requests[PIPELINE_IN_FLIGHT];
};

static void request_start(struct ours *o, struct request *r)
{
	if (o->nr_started == o->job->nr_requests)
		return;
	o->nr_started++;
	flexsc_chain_begin();
	flexsc_open(NULL, o->job->paths[r - o->requests], O_RDONLY | O_CLOEXEC,
		    0);
	flexsc_fstat(NULL, FLEXSC_RESULT(0), &r->st);
	flexsc_read(&r->was_read, FLEXSC_RESULT(0), r->buf, PIPELINE_READ);
	flexsc_chain_finally();
	flexsc_close(NULL, FLEXSC_RESULT(0));
	flexsc_chain_end();
}

static void was_read(struct flexsc_event *ev)
{
	struct ours *o = ev->data;
	struct request *r = (struct request *)ev;

	if (ev->ret != PIPELINE_READ)
		return; /* counted as not done */
	work_do(o->job->work);
	o->nr_done++;
	request_start(o, r);
}

static double run_ours(void *arg)
{
	struct ours *o = arg;
	uint64_t begin;

	flexsc_loop_use(o->loop);
	o->nr_started = o->nr_done = 0;
	begin = now_ns();
	for (int i = 0; i < PIPELINE_IN_FLIGHT; i++) {
		o->requests[i].was_read.handler = was_read;
		o->requests[i].was_read.data = o;
		request_start(o, &o->requests[i]);
	}
	flexsc_loop_run(o->loop);
	if (o->nr_done != o->job->nr_requests)
		return NAN;
	return o->nr_done * 1e9 / (double)(now_ns() - begin);
}

/* Plain calls, in one thread or one on each of two processors ---------------- */

static void plain_request(const struct pipeline_job *job, unsigned int i)
{
	int fd = open(job->paths[i % PIPELINE_IN_FLIGHT], O_RDONLY | O_CLOEXEC);
	char buf[PIPELINE_READ];
	struct stat st;

	if (fstat(fd, &st) == 0 && read(fd, buf, sizeof(buf)) > 0)
		work_do(job->work);
	close(fd);
}

static double run_plain(void *arg)
{
	const struct pipeline_job *job = arg;
	uint64_t begin = now_ns();

	for (unsigned int i = 0; i < job->nr_requests; i++)
		plain_request(job, i);
	return job->nr_requests * 1e9 / (double)(now_ns() - begin);
}

struct both {
	const struct pipeline_job *job;
	atomic_uint next;
};

static void both_work(struct both *b)
{
	unsigned int i;

	while ((i = atomic_fetch_add(&b->next, 1)) < b->job->nr_requests)
		plain_request(b->job, i);
}

static void *both_other(void *arg)
{
	machine_pin(machine()->cpu_other);
	both_work(arg);
	return NULL;
}

static double run_both(void *arg)
{
	struct both b = { .job = arg };
	uint64_t begin = now_ns();
	pthread_t thread;

	if (machine()->cpu_other < 0 ||
	    pthread_create(&thread, NULL, both_other, &b))
		return NAN;
	both_work(&b);
	pthread_join(thread, NULL);
	return b.job->nr_requests * 1e9 / (double)(now_ns() - begin);
}

/* The benchmark --------------------------------------------------------------- */

static struct ours ours[MAX_OURS];

static void run_case(const struct bench_options *o, double work_us,
		     struct pipeline_job *job, struct engine_loop *loops,
		     unsigned int nr_loops)
{
	static struct series rivals[NR_RIVALS];
	struct series all[MAX_OURS + NR_RIVALS] = {
		{ .name = "plain, 1 core", .once = run_plain },
		{ .name = "liburing", .once = pipeline_uring },
		{ .name = "libuv", .once = pipeline_uv },
		{ .name = "plain, 2 cores", .once = run_both },
	};
	double budget_us = o->quick ? 2000 : 80000, trip;
	char label[32];

	snprintf(label, sizeof(label), "work %g us", work_us);
	report_progress("pipeline: %s", label);
	job->work = work_steps(work_us * 1000);
	job->nr_requests = (unsigned int)(budget_us / (work_us + 3));
	for (unsigned int i = 0; i < NR_RIVALS; i++)
		all[i].arg = job;
	for (unsigned int i = 0; i < nr_loops; i++) {
		ours[i].job = job;
		ours[i].loop = loops[i].loop;
		all[NR_RIVALS + i].name = loops[i].name;
		all[NR_RIVALS + i].once = run_ours;
		all[NR_RIVALS + i].arg = &ours[i];
	}
	trip = series_run(all, NR_RIVALS + nr_loops, o->runs);
	memcpy(rivals, all, sizeof(rivals));
	for (unsigned int i = 0; i < nr_loops; i++)
		for (unsigned int j = 0; j < NR_RIVALS; j++)
			if (rivals[j].nr)
				report_pair(
					(struct report_row){
						.bench = "pipeline",
						.label = label,
						.metric = "throughput",
						.unit = "requests/s",
						.roundtrip_ns = trip },
					&all[NR_RIVALS + i], &rivals[j]);
}

static int run(const struct bench_options *o)
{
	static const double work_us[] = { 0.15, 0.5, 1, 2, 3, 5, 9 };
	static char paths[PIPELINE_IN_FLIGHT][PIPELINE_PATH];
	struct pipeline_job job = { .nr_requests = 64,
				    .paths = (const void *)paths };
	struct engine_loop loops[MAX_OURS];
	struct scratch scratch;
	unsigned int nr_loops;
	int bad = scratch_new(&scratch, PIPELINE_IN_FLIGHT);

	if (bad) {
		fprintf(stderr, "flexsc: cannot make files in /tmp: %s\n",
			strerror(-bad));
		return 1;
	}
	for (unsigned int i = 0; i < PIPELINE_IN_FLIGHT; i++)
		scratch_path(&scratch, "", i, paths[i], sizeof(paths[i]));
	/* Its threads inherit where they may run: all processors. */
	machine_unpin();
	if (isnan(pipeline_uv(&job)))
		report_note("pipeline", "built without libuv, or it does not "
					"work: that rival is left out");
	if (isnan(pipeline_uring(&job)))
		report_note("pipeline", "built without liburing, or io_uring "
					"is forbidden: that rival is left out");
	nr_loops = loops_open(loops, o->engine);
	if (!o->engine && loop_open(&loops[nr_loops].loop, "auto") == 0)
		loops[nr_loops++].name = "auto";
	for (unsigned int i = 0; i < sizeof(work_us) / sizeof(work_us[0]); i++)
		run_case(o, work_us[i], &job, loops, nr_loops);
	loops_close(loops, nr_loops);
	scratch_free(&scratch);
	return !nr_loops;
}

const struct bench bench_pipeline = {
	.name = "pipeline",
	.summary = "open, fstat, read, close in a stream, with user work",
	.cases = "user work for each request",
	.run = run,
};

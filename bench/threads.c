/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `threads`: hello HTTP with a thread for each connection, on NPTL
 * and on FlexSC-Threads, beside the same server written by hand on epoll.
 * Processor time a request, and latencies at full and at equal load.
 */
#include "bench/child.h"
#include "bench/machine.h"
#include "bench/report.h"
#include "bench/server.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EQUAL_LOAD 0.7 /* of what NPTL can do */

enum {
	NPTL,
	THREADS,
	EPOLL,
	NR_SERVERS
};

/**
 * struct contestant - a server, and what was measured of it
 * @rate: of the client; 0: as fast as it is answered
 */
struct contestant {
	const struct bench_options *options;
	const struct workload *workload;
	enum runner runner;
	unsigned int nr_connections;
	int cpu;
	double rate;
	struct series cpu_us, per_s, p99;
};

static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

static double run_once(void *arg)
{
	struct contestant *c = arg;
	bool quick = c->options->quick, good;
	struct client_message message = { .text = get,
					  .size = sizeof(get) - 1 };
	struct client_job job = {
		.nr_connections = c->nr_connections,
		.messages = &message,
		.nr_messages = 1,
		.rate = c->rate,
		.warm_ns = quick ? 20000000 : 200000000,
		.measure_ns = quick ? 50000000 : 600000000,
	};
	struct drive result;
	struct child child;
	char name[64];
	double port;

	if (child_start(&child, c->workload, c->runner, c->cpu, quick))
		return NAN;
	good = child_says(&child, name, &port) && strcmp(name, "port") == 0;
	if (good) {
		job.server = (struct server){ .pid = child.pid,
					      .port = (uint16_t)port };
		good = drive_run(&job, &result);
	}
	child_stop(&child, true);
	if (!good)
		return NAN;
	c->per_s.samples[c->per_s.nr++] = result.rate;
	c->p99.samples[c->p99.nr++] = result.p99_us;
	return result.cpu_us;
}

/* In turns; afterwards each has its samples. Returns the round trip. */
static double run_turns(const struct bench_options *o, struct contestant *all,
			unsigned int nr)
{
	static const char *const names[NR_SERVERS] = { "NPTL", "FlexSC",
						       "epoll" };
	struct series turns[NR_SERVERS];
	double trip;

	for (unsigned int i = 0; i < nr; i++) {
		struct contestant *c = &all[i];

		c->options = o;
		c->workload = i == EPOLL ? &workload_hello_epoll :
					   &workload_hello_threads;
		c->runner = i == THREADS ? RUNNER_THREADS : RUNNER_NPTL;
		c->per_s = c->p99 = (struct series){ .name = names[i] };
		turns[i] = (struct series){ .name = names[i],
					    .once = run_once,
					    .arg = c };
	}
	trip = series_run(turns, nr, o->runs);
	for (unsigned int i = 0; i < nr; i++)
		all[i].cpu_us = turns[i];
	return trip;
}

/* FlexSC-Threads beside each of the others, or alone what there is. */
static void report_all(struct report_row r, const struct series *threads,
		       const struct series *nptl, const struct series *epoll)
{
	if (!threads->nr) {
		report_pair(r, nptl, epoll);
		return;
	}
	report_pair(r, threads, nptl);
	if (epoll)
		report_pair(r, threads, epoll);
}

static void report_case(const char *label, double trip, struct contestant *all,
			bool epoll)
{
	struct report_row r = { .bench = "threads",
				.label = label,
				.roundtrip_ns = trip };

	r.metric = "CPU";
	r.unit = "us/request";
	report_all(r, &all[THREADS].cpu_us, &all[NPTL].cpu_us,
		   epoll ? &all[EPOLL].cpu_us : NULL);
	r.metric = "throughput";
	r.unit = "requests/s";
	report_all(r, &all[THREADS].per_s, &all[NPTL].per_s,
		   epoll ? &all[EPOLL].per_s : NULL);
	r.metric = "p99 latency";
	r.unit = "us";
	report_all(r, &all[THREADS].p99, &all[NPTL].p99,
		   epoll ? &all[EPOLL].p99 : NULL);
	if (!all[THREADS].cpu_us.nr)
		report_note("threads",
			    "%s: FlexSC-Threads did not answer, or "
			    "does not work here",
			    label);
}

static void run_case(const struct bench_options *o, unsigned int nr_connections,
		     bool both)
{
	struct contestant all[NR_SERVERS] = { 0 };
	unsigned int nr = both ? EPOLL : NR_SERVERS;
	char label[40];
	double trip, peak;

	snprintf(label, sizeof(label), "hello%s/%u", both ? ", 2 CPUs" : "",
		 nr_connections);
	report_progress("threads: %s", label);
	for (unsigned int i = 0; i < nr; i++) {
		all[i].nr_connections = nr_connections;
		all[i].cpu = both ? -1 : machine()->cpu_app;
	}
	trip = run_turns(o, all, nr);
	report_case(label, trip, all, !both);
	peak = series_median(&all[NPTL].per_s);
	if (both || isnan(peak))
		return;
	for (unsigned int i = 0; i < nr; i++)
		all[i].rate = EQUAL_LOAD * peak;
	report_progress("threads: %s, equal load", label);
	snprintf(label, sizeof(label), "hello, 70 %% load/%u", nr_connections);
	trip = run_turns(o, all, nr);
	report_case(label, trip, all, true);
}

static int run(const struct bench_options *o)
{
	static const unsigned int nr_connections[] = { 64, 256, 1024, 8000 };
	struct rlimit limit = machine()->nofile;

	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < (o->quick ? 1 : 4); i++) {
		if (nr_connections[i] + 100 > limit.rlim_max)
			report_note("threads",
				    "RLIMIT_NOFILE is %lu: %u connections are "
				    "left out",
				    (unsigned long)limit.rlim_max,
				    nr_connections[i]);
		else
			run_case(o, nr_connections[i], false);
	}
	if (machine()->cpu_other >= 0)
		run_case(o, o->quick ? 64 : 256, true);
	return 0;
}

const struct bench bench_threads = {
	.name = "threads",
	.summary = "a thread for each connection: NPTL, FlexSC-Threads, epoll",
	.cases = "server / connections; 70 % load: of what NPTL can do",
	.run = run,
};

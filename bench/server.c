/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `server`: an echo server and a file server over loopback TCP,
 * their processor time a request beside that of the same servers on plain
 * epoll. Server and client are processes of their own, on one processor each.
 */
#include "bench/server.h"

#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_SIZE 1024
#define NR_CASES 4

/**
 * struct contestant - a server; NULL @engine: plain epoll
 * @app, @rate: what a measurement finds out besides the CPU time
 */
struct contestant {
	const char *engine;
	const struct bench_options *options;
	const struct service *service;
	unsigned int nr_connections;
	struct series cpu, app, rate;
};

static const char hello[SERVER_MESSAGE] = "hello";
static const char get[] = "GET /0 HTTP/1.1\r\nHost: localhost\r\n\r\n";

static double run_once(void *arg)
{
	struct contestant *c = arg;
	bool files = c->service->folder;
	struct client_message message = {
		.text = files ? get : hello,
		.size = files ? sizeof(get) - 1 : sizeof(hello),
	};
	struct client_job job = {
		.nr_connections = c->nr_connections,
		.messages = &message,
		.nr_messages = 1,
		.warm_ns = c->options->quick ? 20000000 : 150000000,
		.measure_ns = c->options->quick ? 50000000 : 400000000,
	};
	struct server server;
	struct drive result;
	bool good;

	if (server_start(&server, c->service, c->engine))
		return NAN;
	job.server = server;
	good = drive_run(&job, &result);
	process_stop(server.pid);
	if (!good)
		return NAN;
	if (!isnan(result.app_us))
		c->app.samples[c->app.nr++] = result.app_us;
	c->rate.samples[c->rate.nr++] = result.rate;
	return result.cpu_us;
}

static void report_case(const char *label, double trip,
			const struct contestant *all, unsigned int nr)
{
	struct report_row r = { .bench = "server",
				.label = label,
				.roundtrip_ns = trip };

	r.unit = "us/request";
	r.metric = "CPU";
	for (unsigned int i = 1; i < nr; i++)
		report_pair(r, &all[i].cpu, &all[0].cpu);
	r.metric = "CPU, app thread";
	for (unsigned int i = 1; i < nr; i++)
		report_pair(r, &all[i].app, &all[0].app);
	r.unit = "requests/s";
	r.metric = "throughput";
	for (unsigned int i = 1; i < nr; i++)
		report_pair(r, &all[i].rate, &all[0].rate);
	for (unsigned int i = 1; i < nr; i++)
		if (!all[i].cpu.nr)
			report_note("server",
				    "%s: the server on engine %s "
				    "did not answer, or this engine "
				    "does not work here",
				    label, all[i].engine);
}

static void run_case(const struct bench_options *o,
		     const struct service *service, unsigned int nr_connections,
		     struct contestant *all, unsigned int nr)
{
	struct series turns[NR_ENGINES];
	char label[32];
	double trip;

	snprintf(label, sizeof(label), "%s/%u", service->name, nr_connections);
	report_progress("server: %s", label);
	for (unsigned int i = 0; i < nr; i++) {
		struct contestant *c = &all[i];
		const char *name = c->engine ? c->engine : "plain epoll";

		c->options = o;
		c->service = service;
		c->nr_connections = nr_connections;
		c->cpu.name = c->app.name = c->rate.name = name;
		c->cpu.nr = c->app.nr = c->rate.nr = 0;
		turns[i] = (struct series){ .name = name,
					    .once = run_once,
					    .arg = c };
	}
	trip = series_run(turns, nr, o->runs);
	for (unsigned int i = 0; i < nr; i++)
		all[i].cpu = turns[i];
	report_case(label, trip, all, nr);
}

static void run_service(const struct bench_options *o,
			const struct service *service, struct contestant *all,
			unsigned int nr)
{
	static const unsigned int nr_connections[NR_CASES] = { 16, 256, 1024,
							       8000 };
	rlim_t limit = machine()->nofile.rlim_max;

	for (int i = 0; i < (o->quick ? 1 : NR_CASES); i++) {
		/* One for the connection, one for the file. */
		if (2 * nr_connections[i] + 100 > limit) {
			report_note("server",
				    "RLIMIT_NOFILE is %lu: %u "
				    "connections are left out",
				    (unsigned long)limit, nr_connections[i]);
			continue;
		}
		run_case(o, service, nr_connections[i], all, nr);
	}
}

static int run_files(const struct bench_options *o, struct contestant *all,
		     unsigned int nr)
{
	struct scratch scratch;
	struct service files = { "file", scratch.folder };
	char path[96];
	int bad = scratch_new(&scratch, 1);

	if (bad) {
		fprintf(stderr, "flexsc: no files to serve: %s\n",
			strerror(-bad));
		return 1;
	}
	scratch_path(&scratch, "", 0, path, sizeof(path));
	bad = truncate(path, FILE_SIZE);
	if (!bad)
		run_service(o, &files, all, nr);
	scratch_free(&scratch);
	return bad != 0;
}

static int run(const struct bench_options *o)
{
	static const struct service echo = { "echo", NULL };
	static struct contestant all[NR_ENGINES];
	struct rlimit limit = machine()->nofile;
	unsigned int nr = 1;

	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < NR_ENGINES; i++)
		if (engine_wanted(o->engine, i) &&
		    strcmp(engine_names[i], "sync") != 0)
			all[nr++].engine = engine_names[i];
	if (nr == 1)
		return 1;
	run_service(o, &echo, all, nr);
	return run_files(o, all, nr);
}

const struct bench bench_server = {
	.name = "server",
	.summary = "echo and file server beside plain epoll: processor time",
	.cases = "service / connections",
	.run = run,
};

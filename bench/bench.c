/* SPDX-License-Identifier: MIT */
/*
 * `flexsc bench`: options, the list of benchmarks, and running one of them.
 */
#include "bench/bench.h"

#include "bench/child.h"
#include "bench/loops.h"
#include "bench/report.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bench *const benches[] = {
	&bench_call,	  &bench_pipeline, &bench_outstanding, &bench_server,
	&bench_pollution, &bench_wsc,	   &bench_threads,     &bench_sync,
	&bench_churn,	  &bench_servers,
};

#define NR_BENCHES (sizeof(benches) / sizeof(benches[0]))

enum {
	KEY_CASE = 256,
	KEY_JSON,
	KEY_LIST,
	KEY_PLOT,
	KEY_QUICK,
	KEY_SERVER
};

static const struct argp_option option_list[] = {
	{ "list", KEY_LIST, NULL, 0, "Name the benchmarks and stop", 0 },
	{ "json", KEY_JSON, NULL, 0,
	  "One JSON object a line; the first holds the machine's facts", 0 },
	{ "runs", 'n', "N", 0, "Measure each figure N times (usually 5)", 0 },
	{ "engine", 'e', "ENGINE", 0,
	  "Only this engine: kmod, kcore, hybrid, uthread, poll, uring or sync",
	  0 },
	{ "case", KEY_CASE, "CASE", 0,
	  "Only this one, by its name in the table (call only)", 0 },
	{ "plot", KEY_PLOT, "FILE.svg", 0,
	  "Draw the result too (or .png, .pdf)", 0 },
	{ "quick", KEY_QUICK, NULL, 0,
	  "One short run, to see that it works; the figures mean nothing", 0 },
	{ "server", KEY_SERVER, "SERVER", 0,
	  "Another one than the usual, on libflexsc: nginx, memcached (servers only)",
	  0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct request {
	struct bench_options options;
	const struct bench *bench;
	bool list;
};

static void set_runs(struct request *r, const char *arg,
		     struct argp_state *state)
{
	char *end;
	unsigned long runs = strtoul(arg, &end, 10);

	if (*end || runs < 1 || runs > BENCH_MAX_RUNS)
		argp_error(state,
			   "--runs takes a number from 1 to %d, not "
			   "'%s'",
			   BENCH_MAX_RUNS, arg);
	r->options.runs = (unsigned int)runs;
}

static void set_engine(struct request *r, const char *arg,
		       struct argp_state *state)
{
	for (int i = 0; i < NR_ENGINES; i++)
		if (strcmp(arg, engine_names[i]) == 0)
			r->options.engine = engine_names[i];
	if (!r->options.engine)
		argp_error(
			state,
			"no engine '%s': try kmod, kcore, hybrid, uthread, poll, uring "
			"or sync",
			arg);
}

static void set_bench(struct request *r, const char *arg,
		      struct argp_state *state)
{
	if (r->bench)
		argp_error(state, "one benchmark at a time");
	for (unsigned int i = 0; i < NR_BENCHES; i++)
		if (strcmp(arg, benches[i]->name) == 0)
			r->bench = benches[i];
	if (!r->bench)
		argp_error(state, "no benchmark '%s': see flexsc bench --list",
			   arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;

	switch (key) {
	case KEY_CASE:
		r->options.only = arg;
		break;
	case KEY_JSON:
		r->options.json = true;
		break;
	case KEY_LIST:
		r->list = true;
		break;
	case KEY_PLOT:
		r->options.plot = arg;
		break;
	case KEY_QUICK:
		r->options.quick = true;
		break;
	case KEY_SERVER:
		if (strcmp(arg, "nginx") != 0 && strcmp(arg, "memcached") != 0)
			argp_error(state,
				   "no server '%s': try nginx or memcached",
				   arg);
		r->options.server = arg;
		break;
	case 'n':
		set_runs(r, arg, state);
		break;
	case 'e':
		set_engine(r, arg, state);
		break;
	case ARGP_KEY_ARG:
		set_bench(r, arg, state);
		break;
	case ARGP_KEY_END:
		if (!r->bench && !r->list)
			argp_error(state, "name a benchmark: see flexsc bench "
					  "--list");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "NAME\n--list",
	.doc = "Measure FlexSC beside its rivals: call, pipeline, outstanding, "
	       "server, pollution, wsc; FlexSC-Threads beside NPTL: threads, "
	       "servers, sync, churn."
	       "\v"
	       "Each line holds a figure, that of a rival measured in turns with it, "
	       "their ratio, and how far the runs lie apart. Figures are medians. "
	       "The application runs on the "
	       "first allowed processor, system call threads and clients on another; "
	       "how near the two are (a cache line's round trip) is logged with each "
	       "result, since it decides what the engine uthread costs.\n\n"
	       "Application-core time, in `call`: the time inside flexsc_* calls "
	       "that post a batch, plus the time inside the flexsc_loop_poll() that "
	       "delivers it. Between the two the application waits long enough for "
	       "the syscall thread to finish; a program would do its own work there, "
	       "so that wait is not counted. Engines that carry calls out on the "
	       "application's core (poll, uring, sync) have all their time counted."
	       "\n\nMeasurements share the lock /tmp/flexsc-measure.lock.",
};

/* Nothing but this engine was asked for: better no result than an empty one. */
static bool engine_works(const char *name)
{
	struct engine_loop loop;
	bool works = loops_open(&loop, name) == 1;

	if (works)
		loops_close(&loop, 1);
	else
		fprintf(stderr,
			"flexsc: the engine %s does not work here; "
			"flexsc doctor says why\n",
			name);
	return works;
}

int bench_main(int argc, char **argv)
{
	struct request r = { .options = { .runs = 5 } };
	int status;

	if (argc > 2 && strcmp(argv[1], "--workload") == 0)
		return workload_main(argc - 2, argv + 2);
	argp_program_bug_address = NULL;
	argp_parse(&argp, argc, argv, 0, NULL, &r);
	if (r.list) {
		for (unsigned int i = 0; i < NR_BENCHES; i++)
			printf("%-12s %s\n", benches[i]->name,
			       benches[i]->summary);
		return 0;
	}
	if (r.options.engine && !engine_works(r.options.engine))
		return 1;
	if (r.options.quick)
		r.options.runs = 1;
	status = report_begin(&r.options, r.bench->cases);
	if (!status)
		status = r.bench->run(&r.options);
	return report_end() | status;
}

/* SPDX-License-Identifier: MIT */
/*
 * What `flexsc bench` and the single benchmarks agree on. A benchmark gets its
 * options, prints rows through bench/report.h and returns 0 or an exit status.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>

#define BENCH_MAX_RUNS 101

/**
 * struct bench_options - what the user asked for
 * @engine: only this engine, or NULL
 * @plot:   file for a picture, or NULL
 * @only:   only the case of this name, or NULL
 * @server: another server than the usual ones, or NULL
 * @runs:   samples of each figure
 * @json:   rows as JSON objects, one a line
 * @quick:  one short run, to see that everything works
 */
struct bench_options {
	const char *engine;
	const char *plot;
	const char *only;
	const char *server;
	unsigned int runs;
	bool json;
	bool quick;
};

/**
 * struct bench - one benchmark
 * @cases: how a case is named, for the head of the table; may be NULL
 */
struct bench {
	const char *name;
	const char *summary;
	const char *cases;
	int (*run)(const struct bench_options *options);
};

extern const struct bench bench_call;
extern const struct bench bench_churn;
extern const struct bench bench_outstanding;
extern const struct bench bench_pipeline;
extern const struct bench bench_pollution;
extern const struct bench bench_server;
extern const struct bench bench_servers;
extern const struct bench bench_sync;
extern const struct bench bench_threads;
extern const struct bench bench_wsc;

/* The command; cli/commands.h declares it for main(). */
int bench_main(int argc, char **argv);

#endif /* BENCH_BENCH_H */

/* SPDX-License-Identifier: MIT */
/*
 * The job of benchmark `pipeline` and those who do it. A request: open,
 * fstat, read 4 KB, close, and user work once the contents are there.
 */
#ifndef BENCH_PIPELINE_H
#define BENCH_PIPELINE_H

#include <stdint.h>

#define PIPELINE_IN_FLIGHT 64
#define PIPELINE_READ 4096
#define PIPELINE_PATH 96

/**
 * struct pipeline_job - one measurement
 * @nr_requests: to do
 * @work:        steps of user work for each, see bench/work.h
 * @paths:       PIPELINE_IN_FLIGHT cached files
 */
struct pipeline_job {
	unsigned int nr_requests;
	uint64_t work;
	const char (*paths)[PIPELINE_PATH];
};

/* Requests a second; NAN where it cannot be done. @arg is a pipeline_job. */
double pipeline_uring(void *arg);
double pipeline_uv(void *arg);

#endif /* BENCH_PIPELINE_H */

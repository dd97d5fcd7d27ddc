/* SPDX-License-Identifier: MIT */
/*
 * One run of the client against a server, from the end of its warm-up on.
 */
#include "bench/server.h"

#include "bench/machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool next(int report, struct client_says *says)
{
	return read(report, says, sizeof(*says)) == sizeof(*says);
}

static pid_t start_client(const struct client_job *job)
{
	pid_t pid = process_fork(machine()->cpu_other >= 0 ?
					 machine()->cpu_other :
					 machine()->cpu_app);

	if (pid == 0) {
		int bad = client_run(job);

		if (bad)
			fprintf(stderr, "flexsc: client: %s\n", strerror(-bad));
		_exit(bad != 0);
	}
	return pid;
}

bool drive_run(struct client_job *job, struct drive *result)
{
	struct client_says a, b;
	int report[2];
	pid_t client;
	bool good;
	double nr;

	if (pipe(report))
		return false;
	job->report = report[1];
	client = start_client(job);
	close(report[1]);
	good = next(report[0], &a) && next(report[0], &b) &&
	       b.nr_answers > a.nr_answers;
	process_stop(client);
	close(report[0]);
	if (!good)
		return false;
	nr = (double)(b.nr_answers - a.nr_answers);
	result->cpu_us = (b.cpu_ns - a.cpu_ns) / nr / 1000;
	result->app_us = (b.app_ns - a.app_ns) / nr / 1000;
	result->rate = nr * 1e9 / (double)(b.ns - a.ns);
	result->p50_us = b.p50_us;
	result->p99_us = b.p99_us;
	return true;
}

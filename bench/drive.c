/* SPDX-License-Identifier: MIT */
/*
 * One run of the client against a server, with the server's clocks read when
 * the client says that its warm-up is over, and at its end.
 */
#include "bench/server.h"

#include "bench/machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct moment {
	struct client_says says;
	uint64_t ns;
	double cpu_ns, app_ns;
};

static bool next_moment(int report, const struct server *s, struct moment *m)
{
	if (read(report, &m->says, sizeof(m->says)) != sizeof(m->says) ||
	    !server_clocks(s, &m->cpu_ns, &m->app_ns))
		return false;
	m->ns = now_ns();
	return true;
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

bool drive_run(const struct server *s, struct client_job *job,
	       struct drive *result)
{
	struct moment a, b;
	int report[2];
	pid_t client;
	bool good;
	double nr;

	if (pipe(report))
		return false;
	job->report = report[1];
	client = start_client(job);
	close(report[1]);
	good = next_moment(report[0], s, &a) && next_moment(report[0], s, &b) &&
	       b.says.nr_answers > a.says.nr_answers;
	process_stop(client);
	close(report[0]);
	if (!good)
		return false;
	nr = (double)(b.says.nr_answers - a.says.nr_answers);
	result->cpu_us = (b.cpu_ns - a.cpu_ns) / nr / 1000;
	result->app_us = (b.app_ns - a.app_ns) / nr / 1000;
	result->rate = nr * 1e9 / (double)(b.ns - a.ns);
	result->p50_us = b.says.p50_us;
	result->p99_us = b.says.p99_us;
	return true;
}

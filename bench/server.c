/* SPDX-License-Identifier: MIT */
/*
 * Benchmark `server`: an echo server over loopback TCP, its processor time a
 * request beside that of the same server on plain epoll. Server and client
 * are processes of their own, on one processor each; this one reads their
 * clocks from outside, so that the servers need no code for it.
 */
#include "bench/server.h"

#include "bench/loops.h"
#include "bench/machine.h"
#include "bench/report.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/**
 * struct contestant - a server; NULL @engine: plain epoll
 * @app, @rate: what a measurement finds out besides the CPU time
 */
struct contestant {
	const char *engine;
	const struct bench_options *options;
	unsigned int nr_connections;
	struct series cpu, app, rate;
};

struct moment {
	uint64_t nr_answers, ns;
	double cpu_ns, app_ns;
};

static int listen_somewhere(uint16_t *port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		return -1;
	*port = ntohs(address.sin_port);
	return fd;
}

/* A process that ends with this one, on that processor. 0 in the child. */
static pid_t fork_to(int cpu)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		machine_pin(cpu);
	}
	return pid;
}

/* Of the whole process, and of its first thread: the application's. */
static bool read_clocks(pid_t pid, struct moment *m)
{
	char path[64];
	struct timespec ts;
	clockid_t clock;
	FILE *f;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return false;
	m->cpu_ns = (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
	m->app_ns = NAN;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, pid);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%lf", &m->app_ns) != 1)
			m->app_ns = NAN;
		fclose(f);
	}
	m->ns = now_ns();
	return true;
}

static bool next_moment(int report, pid_t server, struct moment *m)
{
	return read(report, &m->nr_answers, sizeof(m->nr_answers)) ==
		       sizeof(m->nr_answers) &&
	       read_clocks(server, m);
}

static pid_t start_client(const struct contestant *c, uint16_t port, int report)
{
	struct client_job job = {
		.port = port,
		.nr_connections = c->nr_connections,
		.warm_ns = c->options->quick ? 20000000 : 150000000,
		.measure_ns = c->options->quick ? 50000000 : 300000000,
		.report = report,
	};
	pid_t pid = fork_to(machine()->cpu_other >= 0 ? machine()->cpu_other :
							machine()->cpu_app);

	if (pid == 0) {
		int bad = client_run(&job);

		if (bad)
			fprintf(stderr, "flexsc: client: %s\n", strerror(-bad));
		_exit(bad != 0);
	}
	return pid;
}

static void stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static double run_once(void *arg)
{
	struct contestant *c = arg;
	struct moment a, b;
	int report[2], listener;
	pid_t server, client;
	uint16_t port;
	bool good;
	double nr;

	listener = listen_somewhere(&port);
	if (listener < 0 || pipe(report))
		return NAN;
	server = fork_to(machine()->cpu_app);
	if (server == 0) {
		close(report[0]);
		close(report[1]);
		if (c->engine)
			server_flexsc(listener, c->engine);
		else
			server_epoll(listener);
		_exit(1);
	}
	close(listener);
	client = start_client(c, port, report[1]);
	close(report[1]);
	good = next_moment(report[0], server, &a) &&
	       next_moment(report[0], server, &b) &&
	       b.nr_answers > a.nr_answers;
	stop(client);
	stop(server);
	close(report[0]);
	if (!good)
		return NAN;
	nr = (double)(b.nr_answers - a.nr_answers);
	if (!isnan(b.app_ns))
		c->app.samples[c->app.nr++] = (b.app_ns - a.app_ns) / nr / 1000;
	c->rate.samples[c->rate.nr++] = nr * 1e9 / (double)(b.ns - a.ns);
	return (b.cpu_ns - a.cpu_ns) / nr / 1000;
}

static void report_case(const char *label, double trip,
			const struct contestant *all, unsigned int nr)
{
	struct report_row r = { .bench = "server",
				.label = label,
				.roundtrip_ns = trip };

	for (unsigned int i = 1; i < nr; i++) {
		r.unit = "us/request";
		r.metric = "CPU";
		report_pair(r, &all[i].cpu, &all[0].cpu);
		r.metric = "CPU, app thread";
		report_pair(r, &all[i].app, &all[0].app);
		r.unit = "requests/s";
		r.metric = "throughput";
		report_pair(r, &all[i].rate, &all[0].rate);
		if (!all[i].cpu.nr)
			report_note("server",
				    "%s: the server on engine %s "
				    "did not answer, or this engine "
				    "does not work here",
				    label, all[i].engine);
	}
}

static void run_case(const struct bench_options *o, unsigned int nr_connections,
		     struct contestant *all, unsigned int nr)
{
	struct series turns[NR_ENGINES];
	char label[32];
	double trip;

	snprintf(label, sizeof(label), "echo/%u", nr_connections);
	report_progress("server: %s", label);
	for (unsigned int i = 0; i < nr; i++) {
		struct contestant *c = &all[i];
		const char *name = c->engine ? c->engine : "plain epoll";

		c->options = o;
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

static int run(const struct bench_options *o)
{
	static const unsigned int nr_connections[] = { 16, 256, 1024, 8000 };
	static struct contestant all[NR_ENGINES];
	struct rlimit limit = machine()->nofile;
	unsigned int nr = 1;

	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < NR_ENGINES; i++)
		if ((!o->engine || strcmp(o->engine, engine_names[i]) == 0) &&
		    strcmp(engine_names[i], "sync") != 0)
			all[nr++].engine = engine_names[i];
	for (int i = 0; i < (o->quick ? 1 : 4); i++) {
		if (nr_connections[i] + 100 > limit.rlim_max) {
			report_note("server",
				    "RLIMIT_NOFILE is %lu: %u "
				    "connections are left out",
				    (unsigned long)limit.rlim_max,
				    nr_connections[i]);
			continue;
		}
		run_case(o, nr_connections[i], all, nr);
	}
	return nr == 1;
}

const struct bench bench_server = {
	.name = "server",
	.summary = "echo server beside plain epoll: processor time per request",
	.run = run,
};

/* SPDX-License-Identifier: MIT */
/*
 * Starting workloads: this program again, with or without `flexsc run` before
 * it. A preload that silently failed must not pass for a result, so a child
 * says first whether the library is there.
 */
#include "bench/child.h"

#include "bench/machine.h"
#include "bench/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libflexsc-threads.so"

const char *const runner_names[2] = { "NPTL", "FlexSC" };

static const struct workload *const workloads[] = {
	&workload_hello_threads, &workload_hello_epoll, &workload_sync,
	&workload_churn,	 &workload_idle,
};

#define NR_WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

void workload_say(const char *name, double value)
{
	printf("%s %.9g\n", name, value);
	fflush(stdout);
}

static bool library_loaded(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, LIBRARY) != NULL;
	if (f)
		fclose(f);
	return found;
}

int workload_main(int argc, char **argv)
{
	const char *name = argc > 0 ? argv[0] : "";

	if (strcmp(name, "client") == 0)
		return client_main(argc - 1, argv + 1);
	for (unsigned int i = 0; i < NR_WORKLOADS; i++) {
		if (strcmp(workloads[i]->name, name) != 0)
			continue;
		workload_say("library", library_loaded());
		return workloads[i]->run(argc > 1);
	}
	fprintf(stderr, "flexsc: no workload '%s'\n", name);
	return 64;
}

static void execute(const struct workload *what, enum runner runner, bool quick)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *args[] = { self,
			 "run",
			 "--quiet",
			 "--",
			 self,
			 "bench",
			 "--workload",
			 (char *)what->name,
			 quick ? "quick" : NULL,
			 NULL };

	if (n <= 0)
		return;
	self[n] = 0;
	execv(self, runner == RUNNER_THREADS ? args : args + 4);
}

int child_start(struct child *c, const struct workload *what,
		enum runner runner, int cpu, bool quick)
{
	char name[64] = "";
	double value = 0;
	int says[2];

	if (pipe2(says, O_CLOEXEC))
		return -errno;
	c->pid = process_fork(cpu);
	if (c->pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(says[1], STDOUT_FILENO);
		/* What is wrong, its status says; the table stays whole. */
		dup2(null, STDERR_FILENO);
		if (cpu < 0)
			machine_unpin();
		execute(what, runner, quick);
		_exit(127);
	}
	close(says[1]);
	c->says = fdopen(says[0], "re");
	if (c->pid > 0 && child_says(c, name, &value) &&
	    strcmp(name, "library") == 0 &&
	    value == (double)(runner == RUNNER_THREADS))
		return 0;
	child_stop(c, true);
	return -ENOSYS;
}

bool child_says(struct child *c, char name[64], double *value)
{
	return fscanf(c->says, "%63s %lf", name, value) == 2;
}

bool child_stop(struct child *c, bool running)
{
	int status = -1;

	if (c->pid > 0) {
		if (running)
			kill(c->pid, SIGKILL);
		waitpid(c->pid, &status, 0);
	}
	fclose(c->says);
	return status == 0;
}

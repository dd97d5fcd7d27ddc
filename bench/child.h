/* SPDX-License-Identifier: MIT */
/*
 * Plain pthread programs that this command holds, run as processes of their
 * own: as they are, or under `flexsc run`. What they find out they print as
 * lines of a name and a number.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/**
 * struct workload - one of the programs
 * @run: its main(); @quick: only to see that it works
 */
struct workload {
	const char *name;
	int (*run)(bool quick);
};

extern const struct workload workload_hello_threads;
extern const struct workload workload_hello_epoll;
extern const struct workload workload_sync;
extern const struct workload workload_churn;
extern const struct workload workload_idle;

/* Prints one line of what a program says. */
void workload_say(const char *name, double value);

/* `flexsc bench --workload NAME [quick]`; its help does not name it. */
int workload_main(int argc, char **argv);
/* And `--workload client ...`, see bench/paced.c. */
int client_main(int argc, char **argv);

enum runner {
	RUNNER_NPTL,
	RUNNER_THREADS /* FlexSC-Threads */
};

extern const char *const runner_names[2];

struct child {
	pid_t pid;
	FILE *says;
};

/**
 * child_start - a workload, on processor @cpu (-1: on all allowed ones)
 *
 * Return: 0 or -errno; -ENOSYS where FlexSC-Threads does not work.
 */
int child_start(struct child *c, const struct workload *what,
		enum runner runner, int cpu, bool quick);
/* The next line. False: there is none. */
bool child_says(struct child *c, char name[64], double *value);
/* Kills it if it still runs. True: it had ended by itself, with status 0. */
bool child_stop(struct child *c, bool running);

#endif /* BENCH_CHILD_H */

/* SPDX-License-Identifier: MIT */
/*
 * Loops on each engine that works here, and the files that benchmarks use.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <flexsc.h>
#include <stdbool.h>

#define NR_ENGINES 7

struct engine_loop {
	const char *name;
	struct flexsc_loop *loop;
};

/* All engines, best for an application core first. */
extern const char *const engine_names[NR_ENGINES];

/*
 * Is it the one asked for? Without one, all but hybrid: it is one of two
 * others at any time.
 */
bool engine_wanted(const char *only, int i);

/*
 * A loop with this very engine ("auto": any). Return: 0, -ENOSYS when another
 * one would be taken, or an error of flexsc_loop_new(). @loop is set to the
 * other engine's loop on -ENOSYS, so that its reason can be read.
 */
int loop_open(struct flexsc_loop **loop, const char *name);

/* Loops of every usable engine, or of @only; returns how many. */
unsigned int loops_open(struct engine_loop *loops, const char *only);
void loops_close(struct engine_loop *loops, unsigned int nr);

/* Run until so many more handlers of @done were called. */
void loop_finish(struct flexsc_loop *loop, const unsigned int *done,
		 unsigned int wanted);

/**
 * struct scratch - a folder of small files, gone at the end
 */
struct scratch {
	char folder[64];
	unsigned int nr_files;
};

/* Makes @nr files "0", "1", ... of 4 KB. Return: 0 or -errno. */
int scratch_new(struct scratch *s, unsigned int nr);
void scratch_path(const struct scratch *s, const char *prefix, unsigned int i,
		  char *path, unsigned long size);
void scratch_free(struct scratch *s);

/*
 * One such file, open. Return: a descriptor, or -1 after saying why on stderr;
 * then there is nothing to free.
 */
int scratch_open(struct scratch *s, int flags, char *path, unsigned long size);

/* A pair of calls that several benchmarks make: plain, and as a chain. */
void open_close_plain(const char *path);
void open_close_post(struct flexsc_event *ev, const char *path);

#endif /* BENCH_LOOPS_H */

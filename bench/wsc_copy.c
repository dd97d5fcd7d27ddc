/* SPDX-License-Identifier: MIT */
/*
 * The five copying programs of wrapped-system-call.txt, section 4.1: one file
 * after the other (NORMAL), calls of one kind together (COLLECT), reads and
 * writes alternating (RW), each with plain calls or posted and carried out
 * whenever a threshold was reached (WSC). All copy the same 100 files.
 */
#include "bench/wsc.h"

#include "bench/machine.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_FILES = 100,
	FILES_QUICK = 10,
	THRESHOLD = 8,
	SIZE = 4096
};

/* The parts of a program that are timed. */
enum portion {
	TOTAL,
	READ_WRITE,
	WRITE,
	NR_PORTIONS
};

struct copy {
	struct flexsc_event in, out;
	char from[96], to[96];
	char buf[SIZE];
};

static struct copy copies[MAX_FILES];
static unsigned int nr_files, nr_done, nr_bad;

static void done(struct flexsc_event *ev)
{
	nr_done++;
	nr_bad += ev->ret < 0;
}

/* One call for one file, plain or posted. */
struct call {
	void (*plain)(struct copy *c);
	void (*post)(struct copy *c);
};

/* Not truncated: some file systems write such a file out when it is closed. */
#define OUT_FLAGS (O_WRONLY | O_CREAT | O_CLOEXEC)

static void open_in(struct copy *c)
{
	c->in.ret = open(c->from, O_RDONLY | O_CLOEXEC);
}

static void post_open_in(struct copy *c)
{
	flexsc_open(&c->in, c->from, O_RDONLY | O_CLOEXEC, 0);
}

static void open_out(struct copy *c)
{
	c->out.ret = open(c->to, OUT_FLAGS, 0600);
}

static void post_open_out(struct copy *c)
{
	flexsc_open(&c->out, c->to, OUT_FLAGS, 0600);
}

/* A call's result must not overwrite the descriptors: events of their own. */
static struct flexsc_event moves[MAX_FILES];
static int in_fds[MAX_FILES], out_fds[MAX_FILES];

static void read_in(struct copy *c)
{
	nr_bad += read(in_fds[c - copies], c->buf, SIZE) != SIZE;
}

static void post_read_in(struct copy *c)
{
	flexsc_read(&moves[c - copies], in_fds[c - copies], c->buf, SIZE);
}

static void write_out(struct copy *c)
{
	nr_bad += write(out_fds[c - copies], c->buf, SIZE) != SIZE;
}

static void post_write_out(struct copy *c)
{
	flexsc_write(&moves[c - copies], out_fds[c - copies], c->buf, SIZE);
}

static void move(struct copy *c)
{
	read_in(c);
	write_out(c);
}

/* Read and write have an order: a chain. */
static void post_move(struct copy *c)
{
	flexsc_chain_begin();
	flexsc_read(NULL, in_fds[c - copies], c->buf, SIZE);
	post_write_out(c);
	flexsc_chain_end();
}

static void close_in(struct copy *c)
{
	close(in_fds[c - copies]);
}

static void post_close_in(struct copy *c)
{
	flexsc_close(&moves[c - copies], in_fds[c - copies]);
}

static void close_out(struct copy *c)
{
	close(out_fds[c - copies]);
}

static void post_close_out(struct copy *c)
{
	flexsc_close(&moves[c - copies], out_fds[c - copies]);
}

static const struct call open_in_call = { open_in, post_open_in };
static const struct call open_out_call = { open_out, post_open_out };
static const struct call read_call = { read_in, post_read_in };
static const struct call write_call = { write_out, post_write_out };
static const struct call move_call = { move, post_move };
static const struct call close_in_call = { close_in, post_close_in };
static const struct call close_out_call = { close_out, post_close_out };

static void keep_descriptors(struct copy *c)
{
	in_fds[c - copies] = (int)c->in.ret;
	out_fds[c - copies] = (int)c->out.ret;
}

/* The same call for all files; @loop NULL: plain. */
static void for_all(struct flexsc_loop *loop, const struct call *call)
{
	unsigned int nr_posted = 0;

	for (unsigned int i = 0; i < nr_files; i++) {
		if (!loop) {
			call->plain(&copies[i]);
			continue;
		}
		call->post(&copies[i]);
		if (++nr_posted == THRESHOLD || i == nr_files - 1) {
			loop_finish(loop, &nr_done, nr_posted);
			nr_posted = 0;
		}
	}
}

static void run_normal(double ns[NR_PORTIONS])
{
	uint64_t begin = now_ns();

	for (unsigned int i = 0; i < nr_files; i++) {
		struct copy *c = &copies[i];

		open_in(c);
		open_out(c);
		keep_descriptors(c);
		move(c);
		close_in(c);
		close_out(c);
	}
	ns[TOTAL] = (double)(now_ns() - begin);
	ns[READ_WRITE] = ns[WRITE] = NAN;
}

static void run_collect(struct flexsc_loop *loop, bool rw,
			double ns[NR_PORTIONS])
{
	uint64_t begin = now_ns(), opened, was_read, written;

	for_all(loop, &open_in_call);
	for_all(loop, &open_out_call);
	for (unsigned int i = 0; i < nr_files; i++)
		keep_descriptors(&copies[i]);
	opened = was_read = now_ns();
	if (rw) {
		for_all(loop, &move_call);
	} else {
		for_all(loop, &read_call);
		was_read = now_ns();
		for_all(loop, &write_call);
	}
	written = now_ns();
	for_all(loop, &close_in_call);
	for_all(loop, &close_out_call);
	ns[TOTAL] = (double)(now_ns() - begin);
	ns[READ_WRITE] = (double)(written - opened);
	ns[WRITE] = rw ? NAN : (double)(written - was_read);
}

/**
 * struct program - one of the five, and what its portions took
 * @posted: on the loop; else plain calls
 */
struct program {
	const char *name;
	bool collect, rw, posted;
	struct flexsc_loop *loop;
	struct series portions[NR_PORTIONS];
};

static double run_program(void *arg)
{
	struct program *p = arg;
	double ns[NR_PORTIONS];

	if (p->posted)
		flexsc_loop_use(p->loop);
	if (p->collect)
		run_collect(p->posted ? p->loop : NULL, p->rw, ns);
	else
		run_normal(ns);
	for (int i = 0; i < NR_PORTIONS; i++) {
		struct series *s = &p->portions[i];

		s->name = p->name;
		if (!isnan(ns[i]))
			s->samples[s->nr++] = ns[i] / nr_files;
	}
	return ns[TOTAL] / nr_files;
}

enum {
	NORMAL,
	NORMAL_COLLECT,
	WSC_COLLECT,
	NORMAL_RW,
	WSC_RW,
	NR_PROGRAMS
};

static void report_all(struct program *all, const char *engine, double trip)
{
	static const char *const labels[NR_PORTIONS] = { "whole", "read+write",
							 "write" };
	static const int pairs[][2] = { { WSC_COLLECT, NORMAL_COLLECT },
					{ WSC_COLLECT, NORMAL },
					{ WSC_RW, NORMAL_RW },
					{ NORMAL_COLLECT, NORMAL },
					{ NORMAL_RW, NORMAL_COLLECT } };

	for (int i = 0; i < NR_PORTIONS; i++) {
		for (int j = 0; j < 5; j++) {
			struct program *ours = &all[pairs[j][0]];
			struct program *rival = &all[pairs[j][1]];
			struct series s = ours->portions[i];
			char label[64];

			if (!s.nr || !rival->portions[i].nr)
				continue;
			snprintf(label, sizeof(label), "cp %s %s", ours->name,
				 labels[i]);
			s.name = ours->posted ? engine : "none";
			report_pair((struct report_row){ .bench = "wsc",
							 .label = label,
							 .metric = "elapsed",
							 .unit = "ns/file",
							 .roundtrip_ns = trip },
				    &s, &rival->portions[i]);
		}
	}
}

static void prepare(const struct scratch *scratch)
{
	for (unsigned int i = 0; i < nr_files; i++) {
		struct copy *c = &copies[i];

		c->in.handler = c->out.handler = moves[i].handler = done;
		scratch_path(scratch, "", i, c->from, sizeof(c->from));
		scratch_path(scratch, "to", i, c->to, sizeof(c->to));
	}
}

int wsc_copy(const struct bench_options *o, const struct engine_loop *l)
{
	static struct program all[NR_PROGRAMS];
	struct series turns[NR_PROGRAMS] = { 0 };
	struct scratch scratch;
	double trip;
	int bad;

	nr_files = o->quick ? FILES_QUICK : MAX_FILES;
	bad = scratch_new(&scratch, nr_files);
	if (bad) {
		fprintf(stderr, "flexsc: cannot make files in /tmp: %s\n",
			strerror(-bad));
		return 1;
	}
	prepare(&scratch);
	memset(all, 0, sizeof(all));
	all[NORMAL] = (struct program){ .name = "NORMAL" };
	all[NORMAL_COLLECT] =
		(struct program){ .name = "NORMAL+COLLECT", .collect = true };
	all[WSC_COLLECT] = (struct program){ .name = "WSC+COLLECT",
					     .collect = true,
					     .posted = true };
	all[NORMAL_RW] = (struct program){ .name = "NORMAL+RW",
					   .collect = true,
					   .rw = true };
	all[WSC_RW] = (struct program){
		.name = "WSC+RW", .collect = true, .rw = true, .posted = true
	};
	nr_bad = 0;
	for (int i = 0; i < NR_PROGRAMS; i++) {
		all[i].loop = l->loop;
		turns[i].once = run_program;
		turns[i].arg = &all[i];
		run_program(&all[i]); /* the targets exist from here on */
		for (int j = 0; j < NR_PORTIONS; j++)
			all[i].portions[j].nr = 0;
	}
	trip = series_run(turns, NR_PROGRAMS, o->runs);
	report_all(all, l->name, trip);
	scratch_free(&scratch);
	if (nr_bad)
		fprintf(stderr, "flexsc: wsc: %u calls failed\n", nr_bad);
	return nr_bad != 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Engine hybrid changes its mind in the middle of everything: reads that are
 * parked, chains, time-outs, cancels and calls in the pool, while the core
 * thread comes and goes every few rounds. Each must complete exactly once and
 * with its own result.
 */
#include "engine/core.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <flexsc.h>

enum {
	NR_PAIRS = 32,
	NR_CHANGES = 200,
	ROUNDS_A_CHANGE = 20
};

static struct flexsc_loop *loop;
static unsigned long nr_posted, nr_done, nr_cancelled, nr_timed_out;
static bool ending;

struct pair {
	struct flexsc_event read, write, chain, idle;
	struct stat st;
	int fds[2];
	uint32_t sent, got;
	bool unsent; /* the next number waits for the write before it */
	char block[512];
};
static struct pair pairs[NR_PAIRS];

static void posted(int bad)
{
	assert_int_equal(bad, 0);
	nr_posted++;
}

static void start_reading(struct pair *p)
{
	posted(flexsc_read(&p->read, p->fds[0], &p->got, sizeof(p->got)));
}

static void send_next(struct pair *p)
{
	if (!p->unsent || flexsc_pending(&p->write))
		return;
	p->unsent = false;
	posted(flexsc_write(&p->write, p->fds[1], &p->sent, sizeof(p->sent)));
}

static void was_read(struct flexsc_event *ev)
{
	struct pair *p = ev->data;

	nr_done++;
	if (ev->ret == -ECANCELED) {
		nr_cancelled++;
	} else {
		assert_int_equal(ev->ret, sizeof(p->got));
		assert_int_equal(p->got, p->sent);
		p->sent++;
		p->unsent = true;
		send_next(p);
	}
	if (!ending)
		start_reading(p);
}

static void was_written(struct flexsc_event *ev)
{
	nr_done++;
	if (ending && ev->ret == -ECANCELED)
		return;
	assert_int_equal(ev->ret, sizeof(uint32_t));
	send_next(ev->data);
}

static void start_chain(struct pair *p)
{
	assert_int_equal(flexsc_chain_begin(), 0);
	flexsc_open(NULL, "/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
	flexsc_fstat(NULL, FLEXSC_RESULT(0), &p->st);
	posted(flexsc_pread(&p->chain, FLEXSC_RESULT(0), p->block,
			    sizeof(p->block), 0));
	flexsc_chain_finally();
	flexsc_close(NULL, FLEXSC_RESULT(0));
	assert_int_equal(flexsc_chain_end(), 0);
}

static void chain_done(struct flexsc_event *ev)
{
	struct pair *p = ev->data;

	nr_done++;
	/* The end cancels what is on its way. */
	if (ending && ev->ret == -ECANCELED)
		return;
	assert_int_equal(ev->ret, sizeof(p->block));
	assert_memory_equal(p->block, "\177ELF", 4);
	if (!ending)
		start_chain(p);
}

/* Nobody writes to this side: it times out. */
static void start_idle(struct pair *p)
{
	p->idle.timeout_ns = 2 * FX_NS_PER_MS;
	posted(flexsc_recv(&p->idle, p->fds[1], p->block, 1, 0));
}

static void idle_done(struct flexsc_event *ev)
{
	nr_done++;
	nr_timed_out += ev->ret == -ETIMEDOUT;
	assert_true(ev->ret == -ETIMEDOUT || ev->ret == -ECANCELED);
	if (!ending)
		start_idle(ev->data);
}

static void set_up(void)
{
	static const struct flexsc_options options = {
		.size = sizeof(options), .engine = "hybrid"
	};

	assert_int_equal(flexsc_loop_new(&loop, &options), 0);
	for (unsigned i = 0; i < NR_PAIRS; i++) {
		struct pair *p = &pairs[i];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC,
					    0, p->fds),
				 0);
		p->read = (struct flexsc_event){ was_read, .data = p };
		p->write = (struct flexsc_event){ was_written, .data = p };
		p->chain = (struct flexsc_event){ chain_done, .data = p };
		p->idle = (struct flexsc_event){ idle_done, .data = p };
		start_reading(p);
		start_chain(p);
		start_idle(p);
		p->unsent = true;
		send_next(p);
	}
}

static void change(struct fx_uthread *e)
{
	if (e->poll.base.publishes)
		fx_uthread_stop(e);
	else
		assert_int_equal(fx_uthread_start(e), 0);
}

static void changes_its_mind(void **state)
{
	struct fx_uthread *e;

	set_up();
	if (strcmp(flexsc_loop_engine(loop), "hybrid") != 0) {
		print_message("one processor only\n");
		skip();
	}
	e = fx_container_of(loop->owner.engine, struct fx_uthread, poll.base);
	for (int i = 0; i < NR_CHANGES; i++) {
		unsigned long before = nr_done;

		change(e);
		for (int j = 0; j < ROUNDS_A_CHANGE; j++) {
			flexsc_cancel(&pairs[rand() % NR_PAIRS].read);
			flexsc_loop_poll(loop, FX_NS_PER_MS);
		}
		/* It goes on, whoever carries calls out. */
		while (nr_done < before + NR_PAIRS)
			flexsc_loop_poll(loop, FX_NS_PER_MS);
	}
	ending = true;
	assert_int_equal(flexsc_loop_shutdown(loop), 0);
	assert_int_equal(nr_done, nr_posted);
	assert_int_equal(flexsc_loop_outstanding(loop), 0);
	assert_int_equal(flexsc_loop_free(loop), 0);
	assert_true(nr_cancelled > 0 && nr_timed_out > 0);
	for (unsigned i = 0; i < NR_PAIRS; i++)
		assert_true(pairs[i].sent > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_its_mind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

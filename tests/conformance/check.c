/* SPDX-License-Identifier: MIT */
/*
 * Checks, posted calls that are waited for, and the record of outcomes that
 * lets a plain run of a test be the specification of its posted run.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "trace.h"

enum {
	ERRNO_MARK = 4711,
	WAIT_SECONDS = 8,
	MAX_NOTES = 4096
};

unsigned long nr_ops_done;
enum way way = WAY_POSTED;

static struct {
	const char *what;
	int64_t value;
} notes[MAX_NOTES];

static unsigned int nr_notes; /* recorded by the plain run */
static unsigned int next_note; /* the next one to compare with */

static const char *error_name(int64_t value)
{
	if (value >= 0 || value < -4095)
		return "";
	return strerrorname_np((int)-value) ?: "";
}

void check_eq(const char *file, int line, const char *what, int64_t a,
	      int64_t b)
{
	if (a != b)
		fail(file, line, "%s: %lld %s, not %lld %s", what, (long long)a,
		     error_name(a), (long long)b, error_name(b));
}

void check_in(const char *file, int line, const char *what, int64_t x,
	      int64_t low, int64_t high)
{
	if (x < low || x > high)
		fail(file, line, "%s: %lld %s, not in %lld to %lld", what,
		     (long long)x, error_name(x), (long long)low,
		     (long long)high);
}

int64_t plain_result(int64_t ret)
{
	return ret == -1 ? -errno : ret;
}

int64_t note(const char *what, int64_t value)
{
	unsigned int i;

	if (way == WAY_PLAIN) {
		CHECK(nr_notes < MAX_NOTES);
		notes[nr_notes].what = what;
		notes[nr_notes++].value = value;
		return value;
	}
	/* A test that is not run both ways has nothing to compare with. */
	if (!nr_notes)
		return value;
	i = next_note++;
	if (i >= nr_notes)
		FAIL("outcome %u, %s: the plain run ended before", i, what);
	if (strcmp(notes[i].what, what))
		FAIL("outcome %u: %s, but %s in the plain run", i, what,
		     notes[i].what);
	if (notes[i].value != value)
		FAIL("outcome %u, %s: %lld %s, but the plain call %lld %s", i,
		     what, (long long)value, error_name(value),
		     (long long)notes[i].value, error_name(notes[i].value));
	return value;
}

void note_bytes(const char *what, const void *buf, size_t len)
{
	const uint8_t *bytes = buf;
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	note(what, sum);
}

void trace_rewind(void)
{
	CHECK(nr_notes > 0);
	next_note = 0;
}

void trace_end(void)
{
	if (next_note < nr_notes)
		FAIL("the plain run went on with %s", notes[next_note].what);
}

int64_t either_nr(unsigned int nr, const long args[6])
{
	struct op op = { 0 };

	if (way == WAY_PLAIN)
		return plain_result(syscall(nr, args[0], args[1], args[2],
					    args[3], args[4], args[5]));
	POST(post, &op, nr, args[0], args[1], args[2], args[3], args[4],
	     args[5]);
	return WAIT(&op);
}

static void op_done(struct flexsc_event *ev)
{
	struct op *op = ev->data;

	CHECK(&op->ev == ev);
	CHECK(op->posted);
	CHECK(!flexsc_pending(ev));
	op->posted = false;
	op->nr_done++;
	op->done_ns = now_ns();
	nr_ops_done++;
}

struct flexsc_event *op_ready(struct op *op)
{
	CHECK(!op->posted);
	op->ev.handler = op_done;
	op->ev.data = op;
	op->nr_done = 0;
	op->posted = true;
	errno = ERRNO_MARK;
	return &op->ev;
}

void op_posted(const char *file, int line, const char *what, int ret)
{
	int seen = errno;

	if (ret)
		fail(file, line, "%s: posting returns %d %s", what, ret,
		     error_name(ret));
	if (seen != ERRNO_MARK)
		fail(file, line, "%s: posting set errno to %d", what, seen);
}

static int poll_loop(int64_t timeout_ns)
{
	int nr;

	errno = ERRNO_MARK;
	nr = flexsc_loop_poll(loop, timeout_ns);
	CHECK_EQ(errno, ERRNO_MARK);
	if (nr < 0)
		FAIL("flexsc_loop_poll: %s", strerror(-nr));
	return nr;
}

int64_t op_wait(const char *file, int line, struct op *op)
{
	uint64_t limit = now_ns() + WAIT_SECONDS * slowness() * 1000 * MS;

	while (!op->nr_done) {
		if (now_ns() > limit)
			fail(file, line, "call %u has not completed after %u s",
			     op->ev.nr_, WAIT_SECONDS * slowness());
		poll_loop(100 * MS);
	}
	CHECK_EQ(op->nr_done, 1);
	return op->ev.ret;
}

void run_ms(unsigned int ms)
{
	uint64_t until = now_ns() + ms * MS, now;

	while ((now = now_ns()) < until)
		poll_loop((int64_t)(until - now));
}

void run_until(const char *file, int line, const char *what,
	       const unsigned long *counter, unsigned long value)
{
	uint64_t limit = now_ns() + 2 * WAIT_SECONDS * slowness() * 1000 * MS;

	while (*counter < value) {
		if (now_ns() > limit)
			fail(file, line, "%s is only %lu of %lu after %u s",
			     what, *counter, value,
			     2 * WAIT_SECONDS * slowness());
		poll_loop(100 * MS);
	}
	if (*counter > value)
		fail(file, line, "%s is %lu, more than %lu", what, *counter,
		     value);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

unsigned int slowness(void)
{
	const char *limit = getenv("FLEXSC_TEST_TIMEOUT");
	unsigned int seconds = limit ? (unsigned int)atoi(limit) : 10;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	if (!limit)
		seconds = 60;
#endif
	return seconds > 10 ? (seconds + 9) / 10 : 1;
}

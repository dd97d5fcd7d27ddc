/* SPDX-License-Identifier: MIT */
/*
 * The pipeline on liburing, written by hand at its best: one issuer with
 * deferred task work; the open, then read and close linked. The fstat is a
 * plain call, since io_uring hands statx to a worker thread, which costs far
 * more. Knows nothing of FlexSC.
 */
#include "bench/pipeline.h"

#include "bench/machine.h"
#include "bench/work.h"

#include <fcntl.h>
#include <liburing.h>
#include <math.h>
#include <sys/stat.h>

enum stage {
	OPENED,
	READ_DONE,
	CLOSED
};

struct request {
	int fd;
	char buf[PIPELINE_READ];
};

static struct request requests[PIPELINE_IN_FLIGHT];

struct state {
	const struct pipeline_job *job;
	struct io_uring ring;
	unsigned int nr_started, nr_done, nr_in_flight;
};

static struct io_uring_sqe *get_sqe(struct state *s, unsigned int i,
				    enum stage stage)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);

	if (!sqe) {
		io_uring_submit(&s->ring);
		sqe = io_uring_get_sqe(&s->ring);
	}
	sqe->user_data = (uint64_t)i << 2 | stage;
	return sqe;
}

static void start(struct state *s, unsigned int i)
{
	struct io_uring_sqe *sqe;
	uint64_t tag;

	if (s->nr_started == s->job->nr_requests)
		return;
	s->nr_started++;
	s->nr_in_flight++;
	sqe = get_sqe(s, i, OPENED);
	tag = sqe->user_data;
	io_uring_prep_openat(sqe, AT_FDCWD, s->job->paths[i],
			     O_RDONLY | O_CLOEXEC, 0);
	sqe->user_data = tag;
}

static void opened(struct state *s, unsigned int i, int fd)
{
	struct io_uring_sqe *sqe;
	struct stat st;

	requests[i].fd = fd;
	if (fd < 0 || fstat(fd, &st)) {
		s->nr_in_flight--;
		return;
	}
	if (io_uring_sq_space_left(&s->ring) < 2)
		io_uring_submit(&s->ring);
	sqe = get_sqe(s, i, READ_DONE);
	io_uring_prep_read(sqe, fd, requests[i].buf, PIPELINE_READ, 0);
	sqe->user_data = (uint64_t)i << 2 | READ_DONE;
	sqe->flags |= IOSQE_IO_HARDLINK;
	sqe = get_sqe(s, i, CLOSED);
	io_uring_prep_close(sqe, fd);
	sqe->user_data = (uint64_t)i << 2 | CLOSED;
}

static void complete(struct state *s, uint64_t tag, int res)
{
	unsigned int i = (unsigned int)(tag >> 2);

	switch ((enum stage)(tag & 3)) {
	case OPENED:
		opened(s, i, res);
		break;
	case READ_DONE:
		if (res != PIPELINE_READ)
			break;
		work_do(s->job->work);
		s->nr_done++;
		break;
	case CLOSED:
		s->nr_in_flight--;
		start(s, i);
		break;
	}
}

double pipeline_uring(void *arg)
{
	struct state s = { .job = arg };
	uint64_t begin;

	if (io_uring_queue_init(4 * PIPELINE_IN_FLIGHT, &s.ring,
				IORING_SETUP_SINGLE_ISSUER |
					IORING_SETUP_DEFER_TASKRUN) &&
	    io_uring_queue_init(4 * PIPELINE_IN_FLIGHT, &s.ring, 0))
		return NAN;
	begin = now_ns();
	for (unsigned int i = 0; i < PIPELINE_IN_FLIGHT; i++)
		start(&s, i);
	while (s.nr_in_flight) {
		struct io_uring_cqe *cqe;
		unsigned int head, nr = 0;

		if (io_uring_submit_and_wait(&s.ring, 1) < 0)
			break;
		io_uring_for_each_cqe(&s.ring, head, cqe)
		{
			complete(&s, cqe->user_data, cqe->res);
			nr++;
		}
		io_uring_cq_advance(&s.ring, nr);
	}
	begin = now_ns() - begin;
	io_uring_queue_exit(&s.ring);
	return s.nr_done == s.job->nr_requests ?
		       s.nr_done * 1e9 / (double)begin :
		       NAN;
}

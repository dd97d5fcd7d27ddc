/* SPDX-License-Identifier: MIT */
/*
 * Calls on liburing, as `flexsc bench call` counts them; getppid, which
 * io_uring has not, is its operation that does nothing.
 */
#include "bench/count.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>

static struct io_uring ring;
static struct statx results[COUNT_MAX_BATCH];

int count_uring_init(void)
{
	return io_uring_queue_init(COUNT_MAX_BATCH, &ring,
				   IORING_SETUP_SINGLE_ISSUER |
					   IORING_SETUP_DEFER_TASKRUN);
}

void count_uring_fini(void)
{
	io_uring_queue_exit(&ring);
}

static void prepare(struct count_objects *o, enum count_call call,
		    unsigned int i)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	char *buffer = o->buffers[i];

	switch (call) {
	case COUNT_PREAD:
		io_uring_prep_read(sqe, o->file, buffer, COUNT_SIZE, 0);
		break;
	case COUNT_READ:
		io_uring_prep_read(sqe, o->zero, buffer, COUNT_SIZE, -1ull);
		break;
	case COUNT_STAT:
		io_uring_prep_statx(sqe, AT_FDCWD, o->path, 0,
				    STATX_BASIC_STATS, &results[i]);
		break;
	case COUNT_OPEN:
		io_uring_prep_openat(sqe, AT_FDCWD, o->path,
				     O_RDONLY | O_CLOEXEC, 0);
		break;
	case COUNT_CLOSE:
		io_uring_prep_close(sqe, o->files[i]);
		break;
	case COUNT_RECV:
	case COUNT_WAITING:
		io_uring_prep_recv(sqe, o->pairs[i][1], buffer, COUNT_SIZE, 0);
		break;
	case COUNT_SEND:
		io_uring_prep_send(sqe, o->pairs[i][0], buffer, COUNT_SIZE, 0);
		break;
	default:
		io_uring_prep_nop(sqe);
	}
	sqe->user_data = i;
}

void count_uring_prepare(struct count_objects *o, enum count_call call,
			 unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		prepare(o, call, i);
	if (call == COUNT_WAITING)
		io_uring_submit(&ring);
}

void count_uring_finish(struct count_objects *o, enum count_call call,
			unsigned int nr)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;

	while (seen < nr) {
		unsigned int now = 0;

		io_uring_submit_and_wait(&ring, nr - seen);
		io_uring_for_each_cqe (&ring, head, cqe) {
			o->nr_bad += cqe->res < 0;
			if (call == COUNT_OPEN)
				o->files[cqe->user_data] = cqe->res;
			now++;
		}
		io_uring_cq_advance(&ring, now);
		seen += now;
	}
}

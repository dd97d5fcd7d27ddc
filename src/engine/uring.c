/* SPDX-License-Identifier: MIT */
/*
 * Engine uring: engine poll, and one io_uring for what that would give to a
 * syscall thread. What goes where was measured (2 cores, Linux 6.18, ext4 on
 * virtio; CPU time of the process for each call):
 *
 *  - Storage that has to be waited for: 64 reads of 4 KB in flight cost
 *    3.7 us each on the ring and 12.0 us in 16 threads with O_DIRECT (72,000
 *    and 60,000 a second), 7.8 and 19.7 us when not cached. Ring.
 *  - What io_uring itself gives to a kernel thread (opens, renames, fsync,
 *    statx): 1.6 us for a statx, inline 1.1, by a thread of ours 2.9; fsync
 *    10 us either way. Inline while calls of that number are fast, as in
 *    engine poll; then the ring, which is never worse than the pool.
 *  - Cached data: 436 ns on the ring, 297 ns inline. Inline first.
 *  - Sockets and pipes (TCP, 64 and 1024 connections, best of 7): a request
 *    costs 5.4 and 6.2 us with epoll, 5.3 and 6.3 with its receive on a ring
 *    that is DEFER_TASKRUN, 5.6 and 6.9 on one that is not. Parked, as in
 *    engine poll: that is no worse, knows of O_NONBLOCK and of the socket's
 *    own time-outs, and leaves nothing behind in the thread that posted. (It
 *    forgoes 5.0 and 5.6 us, with the answers on a DEFER_TASKRUN ring too.)
 *
 * The ring is not SINGLE_ISSUER, and so not DEFER_TASKRUN: such a ring dies
 * with its thread, while a loop may move to another one with calls in flight
 * (flexsc_loop_use). On storage those flags gain nothing: 3.2 us with
 * COOP_TASKRUN, 3.9 with them. A thread that ends takes its operations with
 * it (-ECANCELED); they are begun again from the loop's new one.
 *
 * Reads and writes at the file position never go to the ring: it does not
 * take the position's lock, and two of them could get the same bytes.
 *
 * Credentials are those of the thread at the time of its submission, as for
 * the call itself, so that a ring survives their change.
 */
#include "arch/arch.h"
#include "arch/fd.h"
#include "engine/attempt.h"
#include "engine/engines.h"
#include "engine/poll.h"
#include "engine/rest.h"
#include "engine/splice.h"
#include "engine/uring_prep.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define RING_SUBMISSIONS 256
#define RING_COMPLETIONS 4096 /* more wait in the kernel */
#define RING_FLAGS                                                            \
	(IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL | \
	 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG)
#define RING_FEATURES                                     \
	(IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | \
	 IORING_FEAT_FAST_POLL | IORING_FEAT_NATIVE_WORKERS)

/* user_data of an operation is its entry; of its cancelling, with this bit. */
#define CANCELLING (UINT64_C(1) << 32)

/* The kernel's own codes, which some operations let out. */
#define ERESTARTSYS 512
#define ERESTART_LAST 516

/* fx_beside.state; the small ones are engine/park.h's. */
#define STATE_RING 128

/* So many are passed on one by one. */
#define MANY_CANCELS 64

/* What a submission that failed for want of memory waits to be repeated. */
#define AGAIN_NS FX_NS_PER_MS

/* Key: O owner only. */
struct uring_engine {
	struct fx_poll poll; /* first */
	struct io_uring ring; /* O */
	struct fx_uring_ops ops;
	uint32_t oldest, newest; /* O: entries on the ring, index + 1 */
	uint32_t nr_flying; /* O: how many */
	uint32_t nr_waiting; /* O: of them, those that a close ends */
	bool loud; /* O: something not submitted yet can raise SIGXFSZ */
	bool cancels_due; /* O: not all cancels were passed on yet */
	uint32_t nr_asked; /* O: cancels passed on since the last submission */
};

static struct uring_engine *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct uring_engine, poll.base);
}

static struct fx_beside *beside(struct uring_engine *e, uint32_t index)
{
	return &e->poll.base.set->beside[index];
}

/* Can it work here? ------------------------------------------------------ */

/* kernel.io_uring_disabled: 0 no, 1 but for a group, 2 for everybody. */
static char disabled_by_sysctl(void)
{
	char value = '0';
	int fd = open("/proc/sys/kernel/io_uring_disabled",
		      O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return '0';
	if (read(fd, &value, 1) != 1)
		value = '0';
	fx_close(fd);
	return value;
}

static void say_why_not(long bad, char *reason, size_t size)
{
	char disabled = disabled_by_sysctl();

	if (bad == -ENOSYS)
		snprintf(reason, size,
			 "finds no io_uring in this kernel, or a seccomp "
			 "filter hides it");
	else if (bad != -EPERM && bad != -EACCES)
		snprintf(reason, size, "has io_uring_setup fail with error %ld",
			 -bad);
	else if (disabled != '0')
		snprintf(reason, size,
			 "is switched off: the sysctl "
			 "kernel.io_uring_disabled is %c",
			 disabled);
	else
		snprintf(reason, size,
			 "is forbidden by a seccomp filter or a security "
			 "module, as in most containers");
}

/*
 * Asks for a ring of no entries: refused for that alone where rings are
 * allowed. A real one would end with a task work some milliseconds later,
 * which makes an epoll_wait of the application return EINTR.
 */
static bool uring_usable(char *reason, size_t size)
{
	struct io_uring_params params = { 0 };
	long bad = fx_arch_syscall(SYS_io_uring_setup, 0, (long)&params, 0, 0,
				   0, 0);
	int saved = errno;

	if (bad != -EINVAL)
		say_why_not(bad, reason, size);
	else
		snprintf(reason, size, "waits for storage without a thread%s",
			 prctl(PR_GET_SECCOMP) == 2 ?
				 ", past this process's seccomp filter" :
				 "");
	errno = saved;
	return bad == -EINVAL;
}

/* Submitting ------------------------------------------------------------- */

/*
 * A write that ends within the submission raises SIGXFSZ or SIGPIPE in this
 * thread; what a kernel thread of io_uring does raises it there, unseen.
 */
static int submit_quietly(struct io_uring *ring)
{
	struct timespec now = { 0, 0 };
	sigset_t quiet, before, pending;
	int saved = errno, n;

	sigemptyset(&quiet);
	sigaddset(&quiet, SIGXFSZ);
	sigaddset(&quiet, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &quiet, &before);
	sigpending(&pending);
	/* What was pending before stays so. */
	if (sigismember(&pending, SIGXFSZ) == 1)
		sigdelset(&quiet, SIGXFSZ);
	if (sigismember(&pending, SIGPIPE) == 1)
		sigdelset(&quiet, SIGPIPE);
	n = io_uring_submit(ring);
	while (sigtimedwait(&quiet, NULL, &now) > 0)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return n;
}

static void submit_now(struct uring_engine *e)
{
	int n;

	if (!io_uring_sq_ready(&e->ring))
		return;
	do {
		fx_count(e->poll.base.counters, ring_calls);
		n = e->loud ? submit_quietly(&e->ring) :
			      io_uring_submit(&e->ring);
	} while (n == -EINTR);
	/* -EAGAIN, -EBUSY: what is left goes with the next submission. */
	if (!io_uring_sq_ready(&e->ring))
		e->loud = false;
}

static struct io_uring_sqe *next_sqe(struct uring_engine *e)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);

	if (sqe)
		return sqe;
	submit_now(e);
	return io_uring_get_sqe(&e->ring);
}

/* Ask that one operation ends; its completion comes in any case. */
static bool ask_to_end(struct uring_engine *e, uint32_t index)
{
	struct io_uring_sqe *sqe = next_sqe(e);

	if (!sqe)
		return false;
	io_uring_prep_cancel64(sqe, index, 0);
	sqe->user_data = index | CANCELLING;
	sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
	beside(e, index)->queue = 1; /* asked */
	return true;
}

/*
 * The kernel looks for a futex to cancel from the newest one on. In the same
 * order the end of 100,000 waits takes a moment, in the other one minutes.
 */
static void ask_all(struct uring_engine *e)
{
	e->cancels_due = false;
	for (uint32_t i = e->newest; i; i = beside(e, i - 1)->older) {
		if (beside(e, i - 1)->queue ||
		    !fx_set_cancel_wanted(e->poll.base.set, i - 1))
			continue;
		if (!ask_to_end(e, i - 1)) {
			e->cancels_due = true;
			return;
		}
	}
}

static void submit(struct uring_engine *e)
{
	if (fx_unlikely(e->cancels_due))
		ask_all(e);
	e->nr_asked = 0;
	submit_now(e);
}

static void list_add(struct uring_engine *e, uint32_t index)
{
	struct fx_beside *b = beside(e, index);

	b->newer = 0;
	b->older = e->newest;
	if (b->older)
		beside(e, b->older - 1)->newer = index + 1;
	else
		e->oldest = index + 1;
	e->newest = index + 1;
	e->nr_flying++;
}

static void list_remove(struct uring_engine *e, uint32_t index)
{
	struct fx_beside *b = beside(e, index);

	if (b->older)
		beside(e, b->older - 1)->newer = b->newer;
	else
		e->oldest = b->newer;
	if (b->newer)
		beside(e, b->newer - 1)->older = b->older;
	else
		e->newest = b->older;
	e->nr_flying--;
}

/* On a pipe io_uring forgets the offset and goes on; the call is ESPIPE. */
static bool has_positions(const struct flexsc_entry *call)
{
	return fx_arch_syscall(SYS_lseek, (int)call->args[0], 0, SEEK_CUR, 0, 0,
			       0) >= 0;
}

/* Neither O_NONBLOCK nor a time-out, which io_uring would not keep to. */
static bool waits_for_ever(int fd, bool out)
{
	struct timeval limit = { 0, 0 };
	uint32_t size = sizeof(limit);
	long flags = fx_arch_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);

	return flags >= 0 && !(flags & O_NONBLOCK) &&
	       fx_arch_syscall(SYS_getsockopt, fd, SOL_SOCKET,
			       out ? SO_SNDTIMEO : SO_RCVTIMEO, (long)&limit,
			       (long)&size, 0) == 0 &&
	       limit.tv_sec == 0 && limit.tv_usec == 0;
}

/* Does the operation treat this descriptor as the call would? */
static bool suits(const struct flexsc_entry *call,
		  const struct fx_call_desc *desc)
{
	switch (call->nr) {
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
		return false; /* at the file position */
	case SYS_preadv2:
	case SYS_pwritev2:
		return (int64_t)call->args[3] >= 0 && has_positions(call);
	case SYS_pread64:
	case SYS_preadv:
	case SYS_pwrite64:
	case SYS_pwritev:
		return has_positions(call);
	case SYS_splice:
		return !fx_splice_locks(call);
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_sendto:
	case SYS_recvfrom:
	case SYS_sendmsg:
	case SYS_recvmsg:
		return call->ret == 0 &&
		       waits_for_ever((int)call->args[0],
				      desc->flags & FX_CALL_OUT);
	default:
		return true;
	}
}

/* May it wait for ever, on a descriptor? */
static bool ends_with_fd(const struct fx_call_desc *desc)
{
	return desc->fd_arg >= 0 && desc->call_class != FX_CALL_DISK;
}

static uint32_t now_us(void)
{
	return (uint32_t)(fx_now_ns() / FX_NS_PER_US);
}

/* fx_pool.instead: put an entry on the ring. */
static bool take(struct fx_pool *pool, uint32_t index)
{
	struct uring_engine *e =
		fx_container_of(pool, struct uring_engine, poll.pool);
	struct flexsc_entry *call = fx_set_entry(pool->set, index);
	const struct fx_call_desc *desc =
		fx_engine_desc(&e->poll.base, call->nr);
	bool begun = call->ret > 0;
	struct io_uring_sqe op, *sqe;
	struct fx_rest rest;

	if (!(desc->flags & FX_CALL_URING) || !suits(call, desc) ||
	    !fx_uring_prep(&e->ops, &op,
			   begun ? fx_rest_of(&rest, call) : call))
		return false;
	sqe = next_sqe(e);
	if (!sqe)
		return false;
	op.user_data = index;
	*sqe = op;
	/* The owner's alone until now: a plain store takes it over. */
	if (fx_load_relaxed(&call->status) == FLEXSC_SUBMITTED)
		fx_store_relaxed(&call->status, FLEXSC_BUSY);
	fx_park_before(&e->poll.park, desc, call);
	beside(e, index)->state = STATE_RING;
	beside(e, index)->queue = 0;
	beside(e, index)->stamp = now_us(); /* microseconds, here */
	list_add(e, index);
	e->nr_waiting += ends_with_fd(desc);
	if (fx_call_may_signal(call->nr))
		e->loud = true;
	if (begun)
		submit(e); /* the rest of a list of buffers is on the stack */
	return true;
}

/* Completing ------------------------------------------------------------- */

/* It ended with the thread that had submitted it: once more, from here. */
static void begin_again(struct uring_engine *e, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(e->poll.base.set, index);

	if (fx_engine_desc(&e->poll.base, call->nr)->call_class !=
		    FX_CALL_WAIT ||
	    !take(&e->poll.pool, index))
		fx_pool_queue(&e->poll.runner, index);
}

static void on_result(struct uring_engine *e, uint32_t index, int64_t ret)
{
	struct flexsc_entry *call = fx_set_entry(e->poll.base.set, index);
	const struct fx_call_desc *desc =
		fx_engine_desc(&e->poll.base, call->nr);
	bool cancelled = fx_set_cancel_wanted(e->poll.base.set, index);
	int64_t done = call->ret;

	/* Among others it would be the queue that is measured. */
	if (e->nr_flying == 1 && desc->call_class != FX_CALL_WAIT)
		fx_cost_note(&e->poll.cost, call->nr,
			     (now_us() - beside(e, index)->stamp) *
				     FX_NS_PER_US);
	list_remove(e, index);
	e->nr_waiting -= ends_with_fd(desc);
	beside(e, index)->state = 0;
	beside(e, index)->queue = 0;
	if (ret == -EINTR || (ret <= -ERESTARTSYS && ret >= -ERESTART_LAST))
		ret = -ECANCELED;
	if (ret == -ECANCELED && !cancelled) {
		begin_again(e, index);
		return;
	}
	if (done > 0) {
		ret = ret >= 0 ? done + ret : done;
		if (ret > done && fx_rest_more(call, ret)) {
			call->ret = ret;
			fx_pool_push(&e->poll.runner, index);
			return;
		}
	}
	fx_park_after(&e->poll.park, desc, call, ret);
	fx_run_over(&e->poll.runner, index, ret);
}

/* Looking at an empty ring asks the kernel if it holds something back. */
static bool peek_enters(struct io_uring *ring)
{
	return fx_load_relaxed(ring->sq.kflags) &
		       (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN) &&
	       !io_uring_cq_ready(ring);
}

static void collect(struct uring_engine *e)
{
	struct io_uring_cqe *cqe;

	if (!e->nr_flying)
		return;
	for (;;) {
		if (peek_enters(&e->ring))
			fx_count(e->poll.base.counters, ring_calls);
		if (io_uring_peek_cqe(&e->ring, &cqe))
			break;
		uint64_t what = cqe->user_data;
		int32_t ret = cqe->res;

		io_uring_cqe_seen(&e->ring, cqe);
		if (!(what & CANCELLING))
			on_result(e, (uint32_t)what, ret);
	}
}

/* Anything for collect(), without asking the kernel? */
static bool has_result(struct uring_engine *e)
{
	return e->nr_flying && (io_uring_cq_ready(&e->ring) ||
				(fx_load_relaxed(e->ring.sq.kflags) &
				 (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)));
}

/* The contract ----------------------------------------------------------- */

static int ring_init(struct uring_engine *e)
{
	struct io_uring_params params = {
		.flags = RING_FLAGS,
		.cq_entries = RING_COMPLETIONS,
	};
	int bad =
		io_uring_queue_init_params(RING_SUBMISSIONS, &e->ring, &params);

	if (bad == -EINVAL) /* older than Linux 5.19 */
		return -EOPNOTSUPP;
	if (bad == -ENOMEM) /* limits of rings; another engine has none */
		return -ENOBUFS;
	if (bad)
		return bad;
	bad = fx_uring_probe(&e->ops, &e->ring);
	if (!bad && (params.features & RING_FEATURES) != RING_FEATURES)
		bad = -EOPNOTSUPP;
	if (bad)
		io_uring_queue_exit(&e->ring);
	else
		io_uring_ring_dontfork(&e->ring);
	return bad;
}

static int uring_new(struct fx_engine **engine,
		     const struct fx_engine_config *config)
{
	struct uring_engine *e = fx_poll_alloc(sizeof(*e));
	unsigned workers[2];
	int bad;

	if (!e)
		return -ENOMEM;
	bad = ring_init(e);
	if (bad)
		goto free_engine;
	bad = fx_poll_init(&e->poll, &fx_engine_uring, config,
			   config->set->owner_eventfd);
	if (bad)
		goto exit_ring;
	bad = fx_park_also(&e->poll.park, e->ring.ring_fd);
	if (bad)
		goto fini_poll;
	e->poll.pool.instead = take;
	/* The kernel's threads are bounded as ours are. */
	workers[0] = workers[1] = e->poll.pool.max_threads;
	io_uring_register_iowq_max_workers(&e->ring, workers);
	*engine = &e->poll.base;
	return 0;

fini_poll:
	fx_poll_fini(&e->poll);
exit_ring:
	io_uring_queue_exit(&e->ring);
free_engine:
	free(e);
	return bad;
}

static void uring_free(struct fx_engine *engine)
{
	struct uring_engine *e = of(engine);

	fx_poll_fini(&e->poll);
	io_uring_queue_exit(&e->ring);
	free(e);
}

static void uring_abandon(struct fx_engine *engine)
{
	struct uring_engine *e = of(engine);

	/* The mappings are the parent's only: the descriptor is all there is. */
	fx_close(e->ring.ring_fd);
	fx_poll_abandon(&e->poll);
	free(e);
}

static bool uring_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	return fx_engine_poll.attempt(engine, call);
}

static unsigned uring_attempt_chain(struct fx_engine *engine,
				    struct flexsc_entry *calls, unsigned nr)
{
	return fx_engine_poll.attempt_chain(engine, calls, nr);
}

static void uring_post(struct fx_engine *engine, const uint32_t *indices,
		       unsigned nr)
{
	fx_engine_poll.post(engine, indices, nr);
}

static void uring_flush(struct fx_engine *engine)
{
	submit(of(engine));
}

static bool uring_quiet(struct fx_engine *engine)
{
	struct uring_engine *e = of(engine);

	return !io_uring_sq_ready(&e->ring) && !e->cancels_due &&
	       !has_result(e) && fx_engine_poll.quiet(engine);
}

static void uring_work(struct fx_engine *engine, unsigned max)
{
	collect(of(engine));
	fx_engine_poll.work(engine, max);
}

static void uring_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct uring_engine *e = of(engine);

	submit(e);
	if (has_result(e))
		return;
	if (io_uring_sq_ready(&e->ring) && timeout_ns > AGAIN_NS)
		timeout_ns = AGAIN_NS;
	/* The ring's descriptor is in the set; a task work interrupts. */
	fx_engine_poll.wait(engine, timeout_ns);
}

static void uring_interrupt(struct fx_engine *engine)
{
	fx_engine_poll.interrupt(engine);
}

static int uring_cancel(struct fx_engine *engine, uint32_t index)
{
	struct uring_engine *e = of(engine);

	if (beside(e, index)->state != STATE_RING)
		return fx_engine_poll.cancel(engine, index);
	if (fx_set_cancel(engine->set, index) == FX_CANCEL_DONE)
		return -EALREADY;
	if (e->nr_asked++ >= MANY_CANCELS || !ask_to_end(e, index))
		e->cancels_due = true;
	return 0;
}

static void uring_closing(struct fx_engine *engine, int fd)
{
	struct uring_engine *e = of(engine);
	uint32_t i, next;

	/* What is on the ring has its file; what is not would get another. */
	submit(e);
	for (i = e->nr_waiting ? e->oldest : 0; i; i = next) {
		const struct flexsc_entry *call =
			fx_set_entry(engine->set, i - 1);
		const struct fx_call_desc *desc =
			fx_engine_desc(engine, call->nr);

		next = beside(e, i - 1)->newer;
		if (ends_with_fd(desc) && (int)call->args[desc->fd_arg] == fd)
			uring_cancel(engine, i - 1);
	}
	fx_engine_poll.closing(engine, fd);
}

static bool uring_moving(struct fx_engine *engine, int fd, int to)
{
	struct uring_engine *e = of(engine);

	/* What was submitted has its file. */
	submit(e);
	if (io_uring_sq_ready(&e->ring))
		return false;
	for (uint32_t i = e->oldest; i; i = beside(e, i - 1)->newer)
		if (beside(e, i - 1)->held == (uint32_t)fd + 1)
			fx_park_drop(&e->poll.park, i - 1);
	return fx_poll_moving(engine, fd, to);
}

static int uring_fd(struct fx_engine *engine)
{
	return fx_engine_poll.fd(engine);
}

static uint64_t uring_due(struct fx_engine *engine)
{
	uint64_t due = fx_engine_poll.due(engine);

	return io_uring_sq_ready(&of(engine)->ring) && due > AGAIN_NS ?
		       AGAIN_NS :
		       due;
}

static bool uring_arm(struct fx_engine *engine)
{
	struct uring_engine *e = of(engine);

	submit(e);
	return !has_result(e) && fx_engine_poll.arm(engine);
}

const struct fx_engine_ops fx_engine_uring = {
	.name = "uring",
	.summary = "as poll, with io_uring for what waits for storage",
	.usable = uring_usable,
	.new = uring_new,
	.free = uring_free,
	.abandon = uring_abandon,
	.attempt = uring_attempt,
	.made = fx_poll_made,
	.attempt_chain = uring_attempt_chain,
	.post = uring_post,
	.flush = uring_flush,
	.quiet = uring_quiet,
	.work = uring_work,
	.wait = uring_wait,
	.interrupt = uring_interrupt,
	.cancel = uring_cancel,
	.closing = uring_closing,
	.moving = uring_moving,
	.fd = uring_fd,
	.due = uring_due,
	.arm = uring_arm,
};

/* SPDX-License-Identifier: MIT */
/*
 * libflexsc: any system call, asynchronously, with a callback.
 *
 *	static void data_read(struct flexsc_event *ev)
 *	{
 *		struct conn *c = ev->data;
 *		if (ev->ret <= 0) ...		// the call's result, or -errno
 *	}
 *
 *	flexsc_init();
 *	c->event.handler = data_read;
 *	c->event.data = c;
 *	flexsc_read(&c->event, c->fd, c->buf, sizeof(c->buf));
 *	flexsc_main_loop();
 *
 * After libflexsc-atc11.txt, section 4 and figure 4. Overview: flexsc(7).
 *
 * Conventions. Functions return 0 (or a count) or -errno; errno is left alone
 * and nothing is printed. What posting a call returns says only whether it
 * was posted; the call's own result is in ev->ret when the handler runs.
 * Memory that a call names (buffers, paths, structures) and the event itself
 * belong to the library from the posting until the handler is called.
 *
 * Threads. A loop belongs to one thread at a time. Except where a comment
 * says "any thread", call a function only from the thread of the loop; none
 * may be called from a signal handler.
 */
#ifndef FLEXSC_H
#define FLEXSC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct flexsc_event;
struct flexsc_loop;

/* Called from flexsc_loop_poll() and its like, never from a posting. */
typedef void flexsc_handler(struct flexsc_event *ev);

/**
 * struct flexsc_event - one call in flight, and what to do when it is done
 * @handler:    called once for each posting; may be NULL
 * @data:       yours
 * @ret:        in the handler: the call's result, >= 0 or -errno
 * @timeout_ns: set before posting: cancel the call after this long, result
 *              -ETIMEDOUT unless it had an effect; 0: no limit
 *
 * Zero-initialized memory is a valid event. The other fields are the
 * library's. One event serves one call at a time: posting it again before its
 * handler has been called returns -EBUSY; the handler itself may.
 */
struct flexsc_event {
	flexsc_handler *handler;
	void *data;
	int64_t ret;
	uint64_t timeout_ns;
	/* private */
	struct flexsc_loop *loop_;
	struct flexsc_event *next_;
	uint32_t index_;
	uint16_t state_;
	uint16_t nr_;
	uint32_t timer_;
	uint8_t nr_args_;
	uint8_t flags_;
	uint16_t reserved_;
	uint64_t args_[6];
};

/* Starting and running a loop ------------------------------------------- */

/**
 * struct flexsc_options - how a loop is made; zero means default
 * @size:        sizeof(struct flexsc_options), which tells of which version
 *               the caller is: members beyond it take their default, members
 *               that this library does not know are ignored
 * @engine:      "auto", "kmod", "kcore", "hybrid", "poll", "uring", "uthread"
 *               or "sync"; NULL: the environment variable FLEXSC_ENGINE, else
 *               "auto"
 * @max_entries: limit of calls outstanding at once (default and most: 131072)
 * @max_threads: limit of syscall threads (default: 16); those of a core that
 *               polls, one or two, are beside them
 * @spin_ns:     how long to poll before sleeping, where a wake-up would cost
 *               more (default: measured; 1: never spin)
 */
struct flexsc_options {
	size_t size;
	const char *engine;
	uint32_t max_entries;
	uint32_t max_threads;
	uint64_t spin_ns;
};

/**
 * flexsc_loop_new - make a loop and make it the calling thread's current one
 * @loop:    where to put it
 * @options: or NULL
 *
 * An engine chosen by hand that cannot be used here is replaced by the next
 * best, see flexsc_loop_engine().
 *
 * Return: 0, -ENOMEM, -EMFILE, -ENFILE, -EINVAL (no engine of this name, also
 * in FLEXSC_ENGINE; or a size of 0).
 */
int flexsc_loop_new(struct flexsc_loop **loop,
		    const struct flexsc_options *options);

/**
 * flexsc_loop_free - release a loop with nothing outstanding
 *
 * Return: 0, or -EBUSY while calls are outstanding or from inside a handler;
 * then nothing was released. flexsc_loop_shutdown() ends what is outstanding.
 */
int flexsc_loop_free(struct flexsc_loop *loop);

/*
 * Cancel everything and run until all handlers were called, those of calls
 * that these handlers post included. 0, or -EBUSY from inside a handler.
 */
int flexsc_loop_shutdown(struct flexsc_loop *loop);

/**
 * flexsc_loop_run - call handlers until flexsc_loop_stop() or nothing is left
 *
 * Return: 0 if nothing is outstanding any more, 1 if stopped, -EBUSY from
 * inside a handler, -ENOMEM after a fork that left no memory or descriptors
 * to make the loop anew.
 */
int flexsc_loop_run(struct flexsc_loop *loop);

/**
 * flexsc_loop_poll - one round: wait for completions and call their handlers
 * @timeout_ns: longest wait; 0: do not wait; negative: no limit
 *
 * May return before the time is over with nothing done, for a signal too.
 *
 * Return: number of calls, timers and sent events that ended in this round
 * (with a handler or without one), -EBUSY from inside a handler, -ENOMEM as
 * above.
 */
int flexsc_loop_poll(struct flexsc_loop *loop, int64_t timeout_ns);

/*
 * Let flexsc_loop_run() return after the present round; if it does not run,
 * after its next one. Any thread.
 */
void flexsc_loop_stop(struct flexsc_loop *loop);

/**
 * flexsc_loop_fd - a descriptor to embed the loop in another one
 *
 * It is readable whenever flexsc_loop_poll(loop, 0) has something to do. From
 * the first call of this function on, a round ends with everything armed, and
 * postings made between rounds make it readable.
 *
 * Return: a descriptor that belongs to the loop, or -EMFILE, -ENOMEM.
 */
int flexsc_loop_fd(struct flexsc_loop *loop);

/**
 * flexsc_loop_send - call an event's handler in the loop's thread, ret 0
 *
 * Any thread. The event must be in nobody's use.
 * Return: 0, -EBUSY (event in flight), -ENOMEM as for flexsc_loop_run().
 */
int flexsc_loop_send(struct flexsc_loop *loop, struct flexsc_event *ev);

/* The loop that postings of this thread go to; NULL if there is none. */
struct flexsc_loop *flexsc_loop_current(void);
/* Make a loop current here; it must not be running elsewhere. */
void flexsc_loop_use(struct flexsc_loop *loop);

/* Calls and timers posted whose handlers have not been called yet. */
size_t flexsc_loop_outstanding(const struct flexsc_loop *loop);
/* Name of the engine in use, and why it was chosen: one sentence. */
const char *flexsc_loop_engine(const struct flexsc_loop *loop);
const char *flexsc_loop_engine_reason(const struct flexsc_loop *loop);

/*
 * The same for a program with one loop (libflexsc-atc11.txt, figure 4).
 * flexsc_init() returns -EBUSY if this thread has a current loop, the other
 * two -EINVAL if it has none.
 */
int flexsc_init(void);
int flexsc_main_loop(void);
int flexsc_fini(void);

/* Posting calls --------------------------------------------------------- */

/**
 * flexsc_post - post any system call on the current loop
 * @ev: what to do when it is done; NULL: nobody cares
 * @nr: number of the x86-64 table; flexsc_refusal() tells of refused ones
 *
 * Calls posted have no order among each other, except inside a chain. A typed
 * wrapper exists for the calls in daily use: flexsc_calls(3). Numbers that do
 * not exist complete with -ENOSYS, refused ones with -EOPNOTSUPP.
 * When the limit of outstanding calls is reached the call waits in @ev; with
 * @ev NULL it runs at once if it cannot block, else -EAGAIN is returned.
 *
 * Return: 0, -EBUSY (event in flight), -EAGAIN, -ENOMEM, -EINVAL (no loop).
 */
int flexsc_post(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
		long a2, long a3, long a4, long a5);

/**
 * flexsc_cancel - ask that a call in flight ends
 *
 * The handler is called in any case: with the call's own result if it had any
 * effect, else with -ECANCELED. (libflexsc-atc11.txt, 4.2)
 *
 * Return: 0 if asked, -EALREADY if it is complete, was asked before, was sent
 * or is part of a chain not posted yet, -ENOENT if the event is not in flight.
 */
int flexsc_cancel(struct flexsc_event *ev);

/**
 * flexsc_ready - wait until a descriptor is ready, and do nothing
 * @events: of poll(2), either for reading or for writing
 *
 * For what reads and writes by itself, as TLS libraries do. The result is what
 * it is ready for (POLLNVAL or -EBADF: not open); O_NONBLOCK and the socket's
 * time-outs do not matter.
 *
 * With FLEXSC_READY_NEXT the caller says that it has just found the descriptor
 * not ready (-EAGAIN, or less than was asked for from a TCP socket): then
 * nothing is asked of the kernel, and the next thing to come ends it. It may
 * end for nothing, too: try, and post it again.
 *
 * Return: as flexsc_post(); -EINVAL for both directions, or none.
 */
int flexsc_ready(struct flexsc_event *ev, int fd, unsigned int events);

#define FLEXSC_READY_NEXT 0x10000u

/**
 * flexsc_take - take the result of a call that is complete
 *
 * For who can go on at once where an engine made the call while it was posted.
 *
 * Return: 1, and ev->ret is the result, the handler will not be called; 0:
 * it will, sooner or later.
 */
int flexsc_take(struct flexsc_event *ev);

/**
 * flexsc_timer - call the handler after a time, with ret 0
 *
 * Return: 0, -EBUSY, -ENOMEM, -EINVAL. Cancelled: ret -ECANCELED.
 */
int flexsc_timer(struct flexsc_event *ev, uint64_t after_ns);

/* Is a call or timer of this event in flight? */
int flexsc_pending(const struct flexsc_event *ev);

/**
 * flexsc_forget - a descriptor was closed or replaced without flexsc_close()
 *
 * Parked calls on it end with -ECANCELED. Not needed after flexsc_close(),
 * flexsc_dup2() and their like. Without it a call posted on a number reused
 * behind the library's back may wait up to a second longer than it should.
 */
void flexsc_forget(int fd);

/**
 * flexsc_ignore_nonblock - calls on a descriptor wait, O_NONBLOCK or not
 *
 * A call posted on an O_NONBLOCK descriptor says -EAGAIN where it would have to
 * wait. For one that has to be O_NONBLOCK for somebody else: of this loop, until
 * the descriptor is closed or forgotten, such calls wait as on any other one.
 * MSG_DONTWAIT and RWF_NOWAIT are heeded, splice(2) may still do a part, and
 * connect(2) still says -EINPROGRESS.
 *
 * Return: 0, -EBADF, -ENOMEM, -EINVAL (no loop), -EOPNOTSUPP: this engine
 * cannot; a chain of flexsc_ready() and the call does the same.
 */
int flexsc_ignore_nonblock(int fd);

/* Why a number is refused: a sentence, or NULL if it can be posted. */
const char *flexsc_refusal(unsigned int nr);

/* "read" for SYS_read; NULL: the library does not know the number. */
const char *flexsc_call_name(unsigned int nr);

/* Chains ---------------------------------------------------------------- */

/**
 * flexsc_chain_begin - collect the calls posted from here on
 *
 * Up to FLEXSC_CHAIN_MAX calls, carried out one after the other without
 * returning to the application in between where the engine can. A call that
 * fails or is cancelled ends the chain: the following ones complete with
 * -ECANCELED. Handlers are called in the order of the chain. timeout_ns of an
 * event counts from flexsc_chain_end() on.
 *
 *	flexsc_chain_begin();
 *	flexsc_open(&f->opened, path, O_RDONLY, 0);
 *	flexsc_fstat(NULL, FLEXSC_RESULT(0), &f->st);
 *	flexsc_read(&f->was_read, FLEXSC_RESULT(0), f->buf, sizeof(f->buf));
 *	flexsc_chain_finally();
 *	flexsc_close(NULL, FLEXSC_RESULT(0));
 *	flexsc_chain_end();
 *
 * Return: 0, -EBUSY (already collecting), -EINVAL (no loop), -ENOMEM as for
 * flexsc_loop_run().
 */
int flexsc_chain_begin(void);

/* The calls after this one run even if one before them failed, unless an
 * argument of theirs is the result of one that failed or did not run. */
int flexsc_chain_finally(void);

/**
 * flexsc_chain_end - post what was collected
 *
 * Return: 0, for an empty chain too; or the first error of what was collected
 * (-E2BIG for more than FLEXSC_CHAIN_MAX calls, -EOPNOTSUPP for a call that
 * depends on the calling thread, -EINVAL for the result of a call that is not
 * before this one, -EBUSY for an event in flight), which the function that
 * posted it has returned already; or -EAGAIN (not enough entries), -ENOMEM;
 * then no call was posted and no handler will be called.
 */
int flexsc_chain_end(void);

#define FLEXSC_CHAIN_MAX 16

/*
 * As an argument inside a chain: the result of its call number n, counted
 * from 0. No descriptor, length or offset that makes sense has such a value.
 */
#define FLEXSC_RESULT(n) (-0x40000000 + (n))

/* Version --------------------------------------------------------------- */

/* "0.1.0" of the library in use. */
const char *flexsc_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#include <flexsc/calls.h>

#endif /* FLEXSC_H */

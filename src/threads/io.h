/* SPDX-License-Identifier: MIT */
/*
 * Blocking system calls of a thread on a carrier, with all that the plain call
 * does to a thread: it is a cancelation point, handlers of signals interrupt
 * it or let it go on, a broken pipe raises SIGPIPE.
 */
#ifndef FX_THREADS_IO_H
#define FX_THREADS_IO_H

#include "call/owner.h"
#include "threads/thread.h"

/* Instead of a result: the thread is at home to stay; make the plain call. */
#define FX_IO_PLAIN (-5000)

/* How a call is made. */
#define FX_IO_NO_CANCEL 1u /* not a cancelation point */

/**
 * fx_io - carry out system call @nr
 * @me: from fx_thread_lent()
 * @deadline: or NULL
 *
 * Does not return if the thread was canceled. Return: the call's result,
 * -ETIMEDOUT at the deadline, or FX_IO_PLAIN.
 */
int64_t fx_io(struct fx_thread *me, unsigned nr, unsigned how,
	      const struct fx_deadline *deadline, const long args[6]);

/**
 * fx_io_call - the same where there is nothing special
 * @call: number, number of arguments, arguments, the rest 0; it closes nothing
 */
int64_t fx_io_call(struct fx_thread *me, struct flexsc_entry *call);

/**
 * fx_io_close - close descriptors in any thread, lent or not
 * @nr: close(2), dup2(2), dup3(2) or close_range(2)
 *
 * Threads that wait on a descriptor go on waiting for its file.
 *
 * Return: the result, or FX_IO_PLAIN: nobody can be waiting.
 */
int64_t fx_io_close(unsigned nr, const long args[6]);

/**
 * fx_io_closing - the C library will close a descriptor itself
 * @fd: or -1
 *
 * The same for what fx_io_close() cannot do.
 *
 * Return: what fx_io_closing_end() is to be given once it is closed, or not.
 */
int fx_io_closing(int fd);
void fx_io_closing_end(int closing);

/* The same in fewer words: a number and its arguments. */
#define fx_io_args(me, number, ...)                                       \
	fx_io_call((me), &(struct flexsc_entry){                          \
				 .nr = (number),                          \
				 .nr_args = fx_owner_desc(number)->nr_args, \
				 .args = { __VA_ARGS__ } })

/**
 * fx_interrupted - a wait was ended by a signal; its handlers have run
 * @handlers, @no_restart: the thread's counts before the wait
 * @restarts: is this one that SA_RESTART lets go on?
 *
 * Return: whether it ends with EINTR.
 */
bool fx_interrupted(const struct fx_thread *me, uint32_t handlers,
		    uint32_t no_restart, bool restarts);

/* Raise a signal in the calling thread, if it would do anything. */
void fx_raise_here(struct fx_thread *me, int signal);

#endif /* FX_THREADS_IO_H */

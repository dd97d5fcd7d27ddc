/* SPDX-License-Identifier: MIT */
/*
 * Threads from creation to join. A thread is made by the C library's own
 * pthread_create(), so all that it keeps of a thread is true; its start
 * routine runs on carriers. One that returned from it and left nothing behind
 * is kept for the next creation instead of ending (threads/recycle.h).
 *
 * All are made joinable for the C library; what POSIX says of joining is in
 * `life`, which changes under the bucket's lock of the lot, keyed by the
 * thread's pthread_t. Under it too a thread that ends for good takes its
 * record away: then the C library's pthread_join() has only its last steps to
 * wait for. A record must not be touched outside of that lock by others.
 */
#ifndef FX_THREADS_CREATE_H
#define FX_THREADS_CREATE_H

#include "threads/thread.h"

enum fx_life {
	FX_LIFE_DETACHED = 1,
	FX_LIFE_JOINING = 2, /* somebody waits for it */
	FX_LIFE_ENDED = 4, /* it is kept; here is its result */
	FX_LIFE_LEAVING = 8, /* it was, and now ends for good */
};

/* As pthread_create(3). Handlers may run and the caller may be lent. */
int fx_thread_create(pthread_t *out, const pthread_attr_t *attr,
		     void *(*start)(void *), void *arg);

/* Before pthread_exit(3) unwinds: handlers of cleanup run at home. */
void fx_thread_exits(void);

/* The record of a thread, NULL if it has none (any more). See above. */
struct fx_thread *fx_thread_of(pthread_t thread);

/* Only by its creator: others find it from now on. */
void fx_thread_publish(pthread_t thread, struct fx_thread *record);

/* threads/join.c, as pthread_clockjoin_np(3) and the others. */
int fx_thread_join(pthread_t thread, void **result,
		   const struct fx_deadline *deadline);
int fx_thread_tryjoin(pthread_t thread, void **result);
int fx_thread_detach(pthread_t thread);

/**
 * fx_thread_ended - it is kept: wake who joins it
 *
 * Return: whether it was detached before: then nobody will.
 */
bool fx_thread_ended(struct fx_thread *me);

/**
 * fx_thread_leaves - it was kept for long: it is to end for good
 *
 * Return: false if somebody has joined it, or is about to.
 */
bool fx_thread_leaves(struct fx_thread *me);

/**
 * fx_thread_gone - take the record away
 *
 * Return: whether it was detached: then the C library has to be told.
 */
bool fx_thread_gone(struct fx_thread *me);

/**
 * fx_thread_wear - its kernel thread must not become another thread's
 *
 * A signal is on its way to it, say, and may arrive late.
 * Return: true if the thread has ended already, and only its kernel thread is
 * kept: nothing must reach that.
 */
bool fx_thread_wear(pthread_t thread);

/**
 * fx_thread_is_gone - has this thread ended, of which the kernel's is kept?
 * @process: that it is said to be of; -1: none was said
 *
 * Natively its number is nobody's then: ESRCH.
 */
bool fx_thread_is_gone(pid_t process, pid_t tid);

/*
 * The signal has been sent. The kernel thread that has it may take its time to
 * say so, and what the sender does next must not be seen before the handler.
 */
void fx_thread_hurry(pthread_t thread);

/*
 * It changed in the kernel: from its next stop on it stays at home. And all of
 * them, those too that are still to be made.
 */
void fx_thread_keep_home(pthread_t thread);
void fx_threads_keep_home(void);
extern uint32_t fx_threads_stay; /* by the latter */

/* As pthread_cancel(3). */
int fx_thread_cancel(pthread_t thread);

/* In the child of a fork. */
void fx_create_after_fork(void);

#endif /* FX_THREADS_CREATE_H */

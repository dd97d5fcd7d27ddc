/* SPDX-License-Identifier: MIT */
/* Names of threads: POSIX and C11. */
#include "arch/fd.h"
#include "preload/c11.h"
#include "preload/result.h"
#include "threads/create.h"
#include "threads/recycle.h"
#include "threads/time.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

FX_NEXT(pthread_join);
FX_NEXT(pthread_tryjoin_np);
FX_NEXT(pthread_clockjoin_np);
FX_NEXT(pthread_getattr_np);
FX_NEXT(pthread_setcancelstate);
FX_NEXT(pthread_setcanceltype);
FX_NEXT(pthread_testcancel);
FX_NEXT(pthread_setname_np);
FX_NEXT(pthread_getname_np);
FX_NEXT(sched_yield);

static int create(pthread_t *thread, const pthread_attr_t *attr,
		  void *(*start)(void *), void *arg)
{
	if (fx_unlikely(!fx_load_relaxed(&fx_threads_running)))
		fx_next_all();
	return fx_thread_create(thread, attr, start, arg);
}

FX_NAME int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			   void *(*start)(void *), void *arg)
{
	return create(thread, attr, start, arg);
}

/*
 * Under names of our own, since <pthread.h> says of its that they do not
 * return, and then they are called and not jumped to: a frame of ours would be
 * unwound in each thread that ends so.
 */
void next_exit(void *result) __asm__("__wrap_pthread_exit");
FX_NAME void end_thread(void *result) __asm__("pthread_exit");

void end_thread(void *result)
{
	fx_thread_exits();
	next_exit(result);
}

FX_NAME int pthread_join(pthread_t thread, void **result)
{
	if (!fx_load_relaxed(&fx_threads_running))
		return NEXT(pthread_join)(thread, result);
	return fx_thread_join(thread, result, NULL);
}

FX_NAME int pthread_tryjoin_np(pthread_t thread, void **result)
{
	if (!fx_load_relaxed(&fx_threads_running))
		return NEXT(pthread_tryjoin_np)(thread, result);
	return fx_thread_tryjoin(thread, result);
}

FX_NAME int pthread_clockjoin_np(pthread_t thread, void **result,
				 clockid_t clock, const struct timespec *until)
{
	struct fx_deadline deadline;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	/*
	 * Until a moment that is none glibc 2.36 waits without a limit, where
	 * 2.41 refuses; asked to wait for its caller, it refuses the one or
	 * the other.
	 */
	if (until && (until->tv_nsec < 0 || until->tv_nsec > 999999999) &&
	    NEXT(pthread_clockjoin_np)(pthread_self(), NULL, clock, until) ==
		    EINVAL)
		return EINVAL;
	if (!until ||
	    (until->tv_sec >= 0 && fx_deadline_of(&deadline, clock, until)))
		return pthread_join(thread, result);
	if (until->tv_sec < 0)
		fx_deadline_of(&deadline, clock, &(struct timespec){ 0 });
	return fx_thread_join(thread, result, &deadline);
}

FX_NAME int pthread_timedjoin_np(pthread_t thread, void **result,
				 const struct timespec *until)
{
	return pthread_clockjoin_np(thread, result, CLOCK_REALTIME, until);
}

FX_NAME int pthread_detach(pthread_t thread)
{
	return fx_thread_detach(thread);
}

/* All are joinable for the C library. */
FX_NAME int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	int bad = NEXT(pthread_getattr_np)(thread, attr);
	struct fx_thread *t = bad ? NULL : fx_thread_of(thread);

	if (t && t->life & FX_LIFE_DETACHED)
		pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
	return bad;
}

FX_NAME int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	return fx_key_create(key, destructor);
}

FX_NAME int pthread_key_delete(pthread_key_t key)
{
	return fx_key_delete(key);
}

FX_NAME int pthread_cancel(pthread_t thread)
{
	return fx_thread_cancel(thread);
}

FX_NAME int pthread_setcancelstate(int state, int *old)
{
	struct fx_thread *me = fx_thread_self();
	int bad = NEXT(pthread_setcancelstate)(state, old);

	if (!bad && me)
		me->cancel_disabled = state == PTHREAD_CANCEL_DISABLE;
	return bad;
}

FX_NAME int pthread_setcanceltype(int type, int *old)
{
	struct fx_thread *me = fx_thread_self();
	int bad = NEXT(pthread_setcanceltype)(type, old);

	if (bad || !me)
		return bad;
	me->cancel_async = type == PTHREAD_CANCEL_ASYNCHRONOUS;
	if (me->cancel_async)
		fx_thread_cancel_point(me);
	return 0;
}

FX_NAME void pthread_testcancel(void)
{
	struct fx_thread *me = fx_thread_self();

	if (me)
		fx_thread_cancel_point(me);
	NEXT(pthread_testcancel)();
}

/* The C library's would name the carrier. */
static int own_comm(const struct fx_thread *me, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)me->tid);
	return open(path, flags | O_CLOEXEC);
}

FX_NAME int pthread_setname_np(pthread_t thread, const char *name)
{
	struct fx_thread *me = fx_thread_away();
	size_t size = strlen(name);
	int fd, bad = 0;

	if (!me || thread != me->self || size > 15)
		return NEXT(pthread_setname_np)(thread, name);
	me->worn = true;
	fd = own_comm(me, O_WRONLY);
	if (fd < 0)
		return errno;
	if (write(fd, name, size) < 0)
		bad = errno;
	fx_close(fd);
	return bad;
}

FX_NAME int pthread_getname_np(pthread_t thread, char *name, size_t size)
{
	struct fx_thread *me = fx_thread_away();
	ssize_t got;
	int fd;

	if (!me || thread != me->self || size < 16)
		return NEXT(pthread_getname_np)(thread, name, size);
	fd = own_comm(me, O_RDONLY);
	if (fd < 0)
		return errno;
	got = read(fd, name, size - 1);
	fx_close(fd);
	if (got < 0)
		return EIO;
	name[got && name[got - 1] == '\n' ? got - 1 : got] = '\0';
	return 0;
}

static int yield(void)
{
	struct fx_thread *me = fx_thread_lent();

	if (!me)
		return NEXT(sched_yield)();
	fx_thread_enter(me);
	fx_yield(&me->task);
	fx_thread_leave(me);
	return 0;
}

FX_NAME int sched_yield(void)
{
	return FX_SEEN(yield(), SYS_sched_yield, 0);
}

static pid_t own_tid(void)
{
	struct fx_thread *me = fx_thread_self();

	return me ? me->tid :
		    (pid_t)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

FX_NAME pid_t gettid(void)
{
	return FX_SEEN(own_tid(), SYS_gettid, 0);
}

/* C11's start routines return int. */
struct c11_start {
	thrd_start_t start;
	void *arg;
};

static void *c11_main(void *arg)
{
	struct c11_start mine = *(struct c11_start *)arg;

	free(arg);
	return (void *)(intptr_t)mine.start(mine.arg);
}

FX_NAME int thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
	struct c11_start *mine = malloc(sizeof(*mine));
	int bad;

	if (!mine)
		return thrd_nomem;
	*mine = (struct c11_start){ start, arg };
	bad = create(thread, NULL, c11_main, mine);
	if (bad)
		free(mine);
	return fx_c11(bad);
}

FX_NAME void thrd_exit(int result)
{
	pthread_exit((void *)(intptr_t)result);
}

FX_NAME int thrd_join(thrd_t thread, int *result)
{
	void *got;
	int bad = pthread_join(thread, &got);

	if (!bad && result)
		*result = (int)(intptr_t)got;
	return fx_c11(bad);
}

FX_NAME int thrd_detach(thrd_t thread)
{
	return fx_c11(fx_thread_detach(thread));
}

FX_NAME void thrd_yield(void)
{
	sched_yield();
}

FX_NAME int tss_create(tss_t *key, tss_dtor_t destructor)
{
	return fx_c11(fx_key_create(key, destructor));
}

FX_NAME void tss_delete(tss_t key)
{
	fx_key_delete(key);
}

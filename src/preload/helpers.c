/* SPDX-License-Identifier: MIT */
/*
 * Names for which the C library makes threads of its own (timer_create() is in
 * clock.c). From a carrier they would inherit its processor, name and signal
 * mask, and what they call back would have them too.
 */
#include "preload/next.h"
#include "threads/thread.h"

#include <aio.h>
#include <mqueue.h>
#include <netdb.h>
#include <signal.h>

#define HOME_FIRST(name, params, args)                    \
	FX_NEXT(name);                                    \
	FX_NAME int name params                           \
	{                                                 \
		struct fx_thread *me = fx_thread_away();  \
                                                          \
		if (me)                                   \
			fx_thread_home(me, FX_HOME_CALL); \
		return NEXT(name) args;                   \
	}

HOME_FIRST(mq_notify, (mqd_t queue, const struct sigevent *event),
	   (queue, event))
HOME_FIRST(aio_read64, (struct aiocb64 * block), (block))
HOME_FIRST(aio_write64, (struct aiocb64 * block), (block))
HOME_FIRST(aio_fsync64, (int what, struct aiocb64 *block), (what, block))
HOME_FIRST(lio_listio64,
	   (int mode, struct aiocb64 *const blocks[], int nr,
	    struct sigevent *event),
	   (mode, blocks, nr, event))
HOME_FIRST(getaddrinfo_a,
	   (int mode, struct gaicb *list[], int nr, struct sigevent *event),
	   (mode, list, nr, event))

/* The same functions on this machine. */
FX_NAME int aio_read(struct aiocb *block) __attribute__((alias("aio_read64")));
FX_NAME int aio_write(struct aiocb *block)
	__attribute__((alias("aio_write64")));
FX_NAME int aio_fsync(int what, struct aiocb *block)
	__attribute__((alias("aio_fsync64")));
FX_NAME int lio_listio(int mode, struct aiocb *const blocks[], int nr,
		       struct sigevent *event)
	__attribute__((alias("lio_listio64")));

/* SPDX-License-Identifier: MIT */
/*
 * Names of message queues and semaphore sets of the system: tried without
 * waiting where there is a way, waited for at home.
 */
#include "preload/result.h"

#include <aio.h>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

FX_NEXT(mq_timedreceive);
FX_NEXT(mq_timedsend);
FX_NEXT(mq_receive);
FX_NEXT(mq_send);
FX_NEXT(msgrcv);
FX_NEXT(msgsnd);
FX_NEXT(semop);
FX_NEXT(semtimedop);
FX_NEXT(aio_suspend);
FX_NEXT(aio_suspend64);

static void go_home(void)
{
	struct fx_thread *me = fx_thread_away();

	if (me)
		fx_thread_home(me, FX_HOME_CALL);
}

FX_NAME ssize_t mq_receive(mqd_t queue, char *message, size_t size,
			   unsigned *priority)
{
	go_home();
	return FX_SEEN(NEXT(mq_receive)(queue, message, size, priority),
		       SYS_mq_timedreceive, queue, (long)message, (long)size,
		       (long)priority);
}

FX_NAME ssize_t mq_timedreceive(mqd_t queue, char *message, size_t size,
				unsigned *priority,
				const struct timespec *until)
{
	go_home();
	return FX_SEEN(NEXT(mq_timedreceive)(queue, message, size, priority, until),
		       SYS_mq_timedreceive, queue, (long)message, (long)size,
		       (long)priority, (long)until);
}

FX_NAME int mq_send(mqd_t queue, const char *message, size_t size,
		    unsigned priority)
{
	go_home();
	return FX_SEEN(NEXT(mq_send)(queue, message, size, priority),
		       SYS_mq_timedsend, queue, (long)message, (long)size,
		       priority);
}

FX_NAME int mq_timedsend(mqd_t queue, const char *message, size_t size,
			 unsigned priority, const struct timespec *until)
{
	go_home();
	return FX_SEEN(NEXT(mq_timedsend)(queue, message, size, priority, until),
		       SYS_mq_timedsend, queue, (long)message, (long)size,
		       priority, (long)until);
}

FX_NAME ssize_t msgrcv(int queue, void *message, size_t size, long type,
		       int flags)
{
	if (!(flags & IPC_NOWAIT))
		go_home();
	return FX_SEEN(NEXT(msgrcv)(queue, message, size, type, flags),
		       SYS_msgrcv, queue, (long)message, (long)size, type,
		       flags);
}

FX_NAME int msgsnd(int queue, const void *message, size_t size, int flags)
{
	if (!(flags & IPC_NOWAIT))
		go_home();
	return FX_SEEN(NEXT(msgsnd)(queue, message, size, flags),
		       SYS_msgsnd, queue, (long)message, (long)size, flags);
}

FX_NAME int semop(int set, struct sembuf *operations, size_t nr)
{
	go_home();
	return FX_SEEN(NEXT(semop)(set, operations, nr),
		       SYS_semop, set, (long)operations, (long)nr);
}

FX_NAME int semtimedop(int set, struct sembuf *operations, size_t nr,
		       const struct timespec *timeout)
{
	go_home();
	return FX_SEEN(NEXT(semtimedop)(set, operations, nr, timeout),
		       SYS_semtimedop, set, (long)operations, (long)nr,
		       (long)timeout);
}

FX_NAME int aio_suspend(const struct aiocb *const list[], int nr,
			const struct timespec *timeout)
{
	go_home();
	return NEXT(aio_suspend)(list, nr, timeout);
}

FX_NAME int aio_suspend64(const struct aiocb64 *const list[], int nr,
			  const struct timespec *timeout)
{
	go_home();
	return NEXT(aio_suspend64)(list, nr, timeout);
}

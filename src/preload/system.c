/* SPDX-License-Identifier: MIT */
/*
 * Names of memory, identity, limits and the like: made as they are, in any
 * thread, and taken for observers alone. Allocators call some of them before
 * anything is ready: nothing here allocates, nor does finding what comes next.
 * What changes the calling thread is in preload/identity.c.
 */
#include "preload/checked.h"
#include "preload/plain.h"

#include <mqueue.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Memory */
FX_PLAIN(void *, mmap,
	 (void *at, size_t size, int prot, int flags, int fd, off_t from),
	 (at, size, prot, flags, fd, from), SYS_mmap, (long)at, (long)size,
	 prot, flags, fd, from)
FX_PLAIN(void *, mmap64,
	 (void *at, size_t size, int prot, int flags, int fd, off64_t from),
	 (at, size, prot, flags, fd, from), SYS_mmap, (long)at, (long)size,
	 prot, flags, fd, from)
FX_PLAIN(int, munmap, (void *at, size_t size), (at, size), SYS_munmap, (long)at,
	 (long)size)
FX_PLAIN(int, mprotect, (void *at, size_t size, int prot), (at, size, prot),
	 SYS_mprotect, (long)at, (long)size, prot)
FX_PLAIN(int, madvise, (void *at, size_t size, int advice), (at, size, advice),
	 SYS_madvise, (long)at, (long)size, advice)
FX_PLAIN(int, mincore, (void *at, size_t size, unsigned char *pages),
	 (at, size, pages), SYS_mincore, (long)at, (long)size, (long)pages)
FX_PLAIN(int, mlock, (const void *at, size_t size), (at, size), SYS_mlock,
	 (long)at, (long)size)
FX_PLAIN(int, mlock2, (const void *at, size_t size, unsigned flags),
	 (at, size, flags), SYS_mlock2, (long)at, (long)size, flags)
FX_PLAIN(int, munlock, (const void *at, size_t size), (at, size), SYS_munlock,
	 (long)at, (long)size)
FX_PLAIN(int, mlockall, (int flags), (flags), SYS_mlockall, flags)
FX_PLAIN(int, munlockall, (void), (), SYS_munlockall, 0)

FX_NEXT(mremap);
FX_NAME void *mremap(void *at, size_t size, size_t to_size, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
	va_end(list);
	return FX_SEEN(NEXT(mremap)(at, size, to_size, flags, to), SYS_mremap,
		       (long)at, (long)size, (long)to_size, flags, (long)to);
}

/* The kernel's says where it ends now. */
FX_NEXT(brk);
FX_NAME int brk(void *end)
{
	return FX_SEEN_AS(NEXT(brk)(end), fx_got ? fx_got : (long)sbrk(0),
			  SYS_brk, (long)end);
}

/* Who and what it is */
FX_PLAIN(pid_t, getpid, (void), (), SYS_getpid, 0)
FX_PLAIN(pid_t, getppid, (void), (), SYS_getppid, 0)
FX_PLAIN(uid_t, getuid, (void), (), SYS_getuid, 0)
FX_PLAIN(uid_t, geteuid, (void), (), SYS_geteuid, 0)
FX_PLAIN(gid_t, getgid, (void), (), SYS_getgid, 0)
FX_PLAIN(gid_t, getegid, (void), (), SYS_getegid, 0)
FX_PLAIN(int, getresuid, (uid_t * real, uid_t *effective, uid_t *saved),
	 (real, effective, saved), SYS_getresuid, (long)real, (long)effective,
	 (long)saved)
FX_PLAIN(int, getresgid, (gid_t * real, gid_t *effective, gid_t *saved),
	 (real, effective, saved), SYS_getresgid, (long)real, (long)effective,
	 (long)saved)
FX_PLAIN(int, getgroups, (int nr, gid_t groups[]), (nr, groups), SYS_getgroups,
	 nr, (long)groups)
FX_PLAIN(int, __getgroups_chk, (int nr, gid_t groups[], size_t room),
	 (nr, groups, room), SYS_getgroups, nr, (long)groups)
FX_PLAIN(pid_t, getpgid, (pid_t pid), (pid), SYS_getpgid, pid)
FX_PLAIN(pid_t, getpgrp, (void), (), SYS_getpgrp, 0)
FX_PLAIN(int, setpgid, (pid_t pid, pid_t group), (pid, group), SYS_setpgid, pid,
	 group)
FX_PLAIN(pid_t, getsid, (pid_t pid), (pid), SYS_getsid, pid)
FX_PLAIN(pid_t, setsid, (void), (), SYS_setsid, 0)
FX_PLAIN(int, uname, (struct utsname * name), (name), SYS_uname, (long)name)
FX_PLAIN(int, sethostname, (const char *name, size_t size), (name, size),
	 SYS_sethostname, (long)name, (long)size)
FX_PLAIN(int, setdomainname, (const char *name, size_t size), (name, size),
	 SYS_setdomainname, (long)name, (long)size)
FX_PLAIN(int, sysinfo, (struct sysinfo * info), (info), SYS_sysinfo, (long)info)

/* Limits and scheduling */
FX_PLAIN(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limit),
	 (what, limit), SYS_prlimit64, 0, what, 0, (long)limit)
FX_PLAIN(int, getrlimit64, (__rlimit_resource_t what, struct rlimit64 *limit),
	 (what, limit), SYS_prlimit64, 0, what, 0, (long)limit)
FX_PLAIN(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit),
	 (what, limit), SYS_prlimit64, 0, what, (long)limit, 0)
FX_PLAIN(int, setrlimit64,
	 (__rlimit_resource_t what, const struct rlimit64 *limit),
	 (what, limit), SYS_prlimit64, 0, what, (long)limit, 0)
FX_PLAIN(int, prlimit,
	 (pid_t pid, __rlimit_resource_t what, const struct rlimit *limit,
	  struct rlimit *old),
	 (pid, what, limit, old), SYS_prlimit64, pid, what, (long)limit,
	 (long)old)
FX_PLAIN(int, prlimit64,
	 (pid_t pid, __rlimit_resource_t what, const struct rlimit64 *limit,
	  struct rlimit64 *old),
	 (pid, what, limit, old), SYS_prlimit64, pid, what, (long)limit,
	 (long)old)
FX_PLAIN(int, sched_getscheduler, (pid_t pid), (pid), SYS_sched_getscheduler,
	 pid)
FX_PLAIN(int, sched_getparam, (pid_t pid, struct sched_param *param),
	 (pid, param), SYS_sched_getparam, pid, (long)param)
FX_PLAIN(int, sched_get_priority_max, (int policy), (policy),
	 SYS_sched_get_priority_max, policy)
FX_PLAIN(int, sched_get_priority_min, (int policy), (policy),
	 SYS_sched_get_priority_min, policy)
FX_PLAIN(int, sched_rr_get_interval, (pid_t pid, struct timespec *interval),
	 (pid, interval), SYS_sched_rr_get_interval, pid, (long)interval)

/* Time; reading the clock is no system call, as a rule */
FX_PLAIN(unsigned, alarm, (unsigned seconds), (seconds), SYS_alarm, seconds)
FX_PLAIN(int, getitimer, (__itimer_which_t which, struct itimerval *value),
	 (which, value), SYS_getitimer, which, (long)value)
FX_PLAIN(int, setitimer,
	 (__itimer_which_t which, const struct itimerval *restrict value,
	  struct itimerval *restrict old),
	 (which, value, old), SYS_setitimer, which, (long)value, (long)old)
FX_PLAIN(clock_t, times, (struct tms * buf), (buf), SYS_times, (long)buf)
FX_PLAIN(int, clock_settime, (clockid_t clock, const struct timespec *ts),
	 (clock, ts), SYS_clock_settime, clock, (long)ts)
FX_PLAIN(int, adjtimex, (struct timex * timex), (timex), SYS_adjtimex,
	 (long)timex)
FX_PLAIN(int, timer_gettime, (timer_t timer, struct itimerspec *value),
	 (timer, value), SYS_timer_gettime, (long)timer, (long)value)
FX_PLAIN(int, timer_getoverrun, (timer_t timer), (timer), SYS_timer_getoverrun,
	 (long)timer)
FX_PLAIN(int, timerfd_gettime, (int fd, struct itimerspec *value), (fd, value),
	 SYS_timerfd_gettime, fd, (long)value)

/* What processes share; waiting for it is in preload/ipc.c */
FX_PLAIN(int, shmget, (key_t key, size_t size, int flags), (key, size, flags),
	 SYS_shmget, key, (long)size, flags)
FX_PLAIN(void *, shmat, (int id, const void *at, int flags), (id, at, flags),
	 SYS_shmat, id, (long)at, flags)
FX_PLAIN(int, shmdt, (const void *at), (at), SYS_shmdt, (long)at)
FX_PLAIN(int, shmctl, (int id, int what, struct shmid_ds *buf), (id, what, buf),
	 SYS_shmctl, id, what, (long)buf)
FX_PLAIN(int, semget, (key_t key, int nr, int flags), (key, nr, flags),
	 SYS_semget, key, nr, flags)
FX_PLAIN(int, msgget, (key_t key, int flags), (key, flags), SYS_msgget, key,
	 flags)
FX_PLAIN(int, msgctl, (int id, int what, struct msqid_ds *buf), (id, what, buf),
	 SYS_msgctl, id, what, (long)buf)

/* Is there a fourth one? */
static bool semctl_takes(int what)
{
	return what == SETVAL || what == GETALL || what == SETALL ||
	       what == IPC_STAT || what == IPC_SET || what == IPC_INFO ||
	       what == SEM_STAT || what == SEM_INFO || what == SEM_STAT_ANY;
}

FX_NEXT(semctl);
FX_NAME int semctl(int id, int nr, int what, ...)
{
	va_list list;
	long arg = 0;

	va_start(list, what);
	if (semctl_takes(what))
		arg = va_arg(list, long);
	va_end(list);
	return FX_SEEN(NEXT(semctl)(id, nr, what, arg), SYS_semctl, id, nr,
		       what, arg);
}

/* The kernel's names have no slash. */
static long bare(const char *name)
{
	return (long)(name && fx_watched() && *name == '/' ? name + 1 : name);
}

FX_NEXT(mq_open);
FX_NAME mqd_t mq_open(const char *name, int flags, ...)
{
	struct mq_attr *attr = NULL;
	mode_t mode = 0;
	va_list list;

	if (flags & O_CREAT) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		attr = va_arg(list, struct mq_attr *);
		va_end(list);
	}
	return FX_SEEN(NEXT(mq_open)(name, flags, mode, attr), SYS_mq_open,
		       bare(name), flags, mode, (long)attr);
}

FX_PLAIN(int, mq_unlink, (const char *name), (name), SYS_mq_unlink, bare(name))
FX_PLAIN(int, mq_getattr, (mqd_t queue, struct mq_attr *attr), (queue, attr),
	 SYS_mq_getsetattr, queue, 0, (long)attr)
FX_PLAIN(int, mq_setattr,
	 (mqd_t queue, const struct mq_attr *restrict attr,
	  struct mq_attr *restrict old),
	 (queue, attr, old), SYS_mq_getsetattr, queue, (long)attr, (long)old)

/* Memory of others */
FX_PLAIN(ssize_t, process_vm_readv,
	 (pid_t pid, const struct iovec *here, unsigned long nr_here,
	  const struct iovec *there, unsigned long nr_there,
	  unsigned long flags),
	 (pid, here, nr_here, there, nr_there, flags), SYS_process_vm_readv,
	 pid, (long)here, (long)nr_here, (long)there, (long)nr_there,
	 (long)flags)
FX_PLAIN(ssize_t, process_vm_writev,
	 (pid_t pid, const struct iovec *here, unsigned long nr_here,
	  const struct iovec *there, unsigned long nr_there,
	  unsigned long flags),
	 (pid, here, nr_here, there, nr_there, flags), SYS_process_vm_writev,
	 pid, (long)here, (long)nr_here, (long)there, (long)nr_there,
	 (long)flags)

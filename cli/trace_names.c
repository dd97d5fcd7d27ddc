/* SPDX-License-Identifier: MIT */
/*
 * Numbers whose names depend on the call: kinds | (flags), - (one of several)
 * and _ (of prctl) of src/call/arguments.tbl. Calls that are not here have the
 * number in hexadecimal.
 */
#include "cli/trace_print.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

static const struct named sync_flags[] = { NAMED(MS_ASYNC),
					   NAMED(MS_INVALIDATE),
					   NAMED(MS_SYNC) };
static const struct named remap_flags[] = { NAMED(MREMAP_MAYMOVE),
					    NAMED(MREMAP_FIXED),
					    { 4, "MREMAP_DONTUNMAP" } };
static const struct named lock_flags[] = { NAMED(MCL_CURRENT),
					   NAMED(MCL_FUTURE),
					   { 4, "MCL_ONFAULT" } };
static const struct named lock2_flags[] = { { 1, "MLOCK_ONFAULT" } };
static const struct named close_flags[] = { { 2, "CLOSE_RANGE_UNSHARE" },
					    { 4, "CLOSE_RANGE_CLOEXEC" } };
static const struct named rename_flags[] = { { 1, "RENAME_NOREPLACE" },
					     { 2, "RENAME_EXCHANGE" },
					     { 4, "RENAME_WHITEOUT" } };
static const struct named random_flags[] = { NAMED(GRND_NONBLOCK),
					     NAMED(GRND_RANDOM),
					     { 4, "GRND_INSECURE" } };
static const struct named memfd_flags[] = { { 1, "MFD_CLOEXEC" },
					    { 2, "MFD_ALLOW_SEALING" },
					    { 4, "MFD_HUGETLB" },
					    { 8, "MFD_NOEXEC_SEAL" },
					    { 16, "MFD_EXEC" } };
static const struct named splice_flags[] = { NAMED(SPLICE_F_MOVE),
					     NAMED(SPLICE_F_NONBLOCK),
					     NAMED(SPLICE_F_MORE),
					     NAMED(SPLICE_F_GIFT) };
static const struct named rw_flags[] = { NAMED(RWF_HIPRI), NAMED(RWF_DSYNC),
					 NAMED(RWF_SYNC), NAMED(RWF_NOWAIT),
					 NAMED(RWF_APPEND) };
static const struct named fallocate_modes[] = {
	{ 1, "FALLOC_FL_KEEP_SIZE" },	   { 2, "FALLOC_FL_PUNCH_HOLE" },
	{ 8, "FALLOC_FL_COLLAPSE_RANGE" }, { 16, "FALLOC_FL_ZERO_RANGE" },
	{ 32, "FALLOC_FL_INSERT_RANGE" },  { 64, "FALLOC_FL_UNSHARE_RANGE" },
};
static const struct named statx_masks[] = {
	{ 0x7ff, "STATX_BASIC_STATS" },
	NAMED(STATX_TYPE),
	NAMED(STATX_MODE),
	NAMED(STATX_NLINK),
	NAMED(STATX_UID),
	NAMED(STATX_GID),
	NAMED(STATX_ATIME),
	NAMED(STATX_MTIME),
	NAMED(STATX_CTIME),
	NAMED(STATX_INO),
	NAMED(STATX_SIZE),
	NAMED(STATX_BLOCKS),
	NAMED(STATX_BTIME),
	{ 0x1000, "STATX_MNT_ID" },
	{ 0x2000, "STATX_DIOALIGN" },
};
static const struct named statx_syncs[] = { { 0, "AT_STATX_SYNC_AS_STAT" },
					    { 0x2000, "AT_STATX_FORCE_SYNC" },
					    { 0x4000, "AT_STATX_DONT_SYNC" } };
static const struct named watch_masks[] = {
	NAMED(IN_ACCESS),      NAMED(IN_MODIFY),	NAMED(IN_ATTRIB),
	NAMED(IN_CLOSE_WRITE), NAMED(IN_CLOSE_NOWRITE), NAMED(IN_OPEN),
	NAMED(IN_MOVED_FROM),  NAMED(IN_MOVED_TO),	NAMED(IN_CREATE),
	NAMED(IN_DELETE),      NAMED(IN_DELETE_SELF),	NAMED(IN_MOVE_SELF),
	NAMED(IN_ONLYDIR),     NAMED(IN_DONT_FOLLOW),	NAMED(IN_EXCL_UNLINK),
	NAMED(IN_MASK_ADD),    NAMED(IN_ISDIR),		NAMED(IN_ONESHOT),
};
static const struct named usages[] = { NAMED(RUSAGE_SELF),
				       NAMED(RUSAGE_CHILDREN),
				       NAMED(RUSAGE_THREAD) };
static const struct named priorities[] = { NAMED(PRIO_PROCESS),
					   NAMED(PRIO_PGRP), NAMED(PRIO_USER) };
static const struct named itimers[] = { NAMED(ITIMER_REAL),
					NAMED(ITIMER_VIRTUAL),
					NAMED(ITIMER_PROF) };
static const struct named id_types[] = { NAMED(P_ALL),
					 NAMED(P_PID),
					 NAMED(P_PGID),
					 { 3, "P_PIDFD" } };
static const struct named clones[] = {
	{ 0x80, "CLONE_NEWTIME" }, NAMED(CLONE_VM),	 NAMED(CLONE_FS),
	NAMED(CLONE_FILES),	   NAMED(CLONE_SIGHAND), NAMED(CLONE_THREAD),
	NAMED(CLONE_NEWNS),	   NAMED(CLONE_SYSVSEM), NAMED(CLONE_NEWCGROUP),
	NAMED(CLONE_NEWUTS),	   NAMED(CLONE_NEWIPC),	 NAMED(CLONE_NEWUSER),
	NAMED(CLONE_NEWPID),	   NAMED(CLONE_NEWNET),
};
static const struct named policies[] = {
	NAMED(SCHED_OTHER), NAMED(SCHED_FIFO), NAMED(SCHED_RR),
	NAMED(SCHED_BATCH), NAMED(SCHED_IDLE), { 6, "SCHED_DEADLINE" },
	{ 7, "SCHED_EXT" }
};
static const struct named keys[] = { NAMED(IPC_PRIVATE) };
static const struct named get_flags[] = { NAMED(IPC_CREAT), NAMED(IPC_EXCL) };
static const struct named memory_flags[] = { NAMED(IPC_CREAT),
					     NAMED(IPC_EXCL),
					     { 04000, "SHM_HUGETLB" },
					     { 010000, "SHM_NORESERVE" } };
static const struct named attach_flags[] = { NAMED(SHM_RDONLY),
					     NAMED(SHM_RND),
					     NAMED(SHM_REMAP),
					     { 0100000, "SHM_EXEC" } };
static const struct named controls[] = {
	NAMED(IPC_RMID), NAMED(IPC_SET),  NAMED(IPC_STAT),
	NAMED(IPC_INFO), NAMED(SHM_LOCK), NAMED(SHM_UNLOCK),
};
static const struct named sem_controls[] = {
	NAMED(IPC_RMID), NAMED(IPC_SET), NAMED(IPC_STAT), NAMED(IPC_INFO),
	NAMED(GETPID),	 NAMED(GETVAL),	 NAMED(GETALL),	  NAMED(GETNCNT),
	NAMED(GETZCNT),	 NAMED(SETVAL),	 NAMED(SETALL),
};
static const struct named timer_flags[] = { NAMED(TIMER_ABSTIME) };
static const struct named timerfd_flags[] = { { 1, "TFD_TIMER_ABSTIME" },
					      { 2,
						"TFD_TIMER_CANCEL_ON_SET" } };
static const struct named umount_flags[] = { NAMED(MNT_FORCE),
					     NAMED(MNT_DETACH),
					     NAMED(MNT_EXPIRE),
					     NAMED(UMOUNT_NOFOLLOW) };
static const struct named mount_flags[] = {
	NAMED(MS_RDONLY),     NAMED(MS_NOSUID),	     NAMED(MS_NODEV),
	NAMED(MS_NOEXEC),     NAMED(MS_SYNCHRONOUS), NAMED(MS_REMOUNT),
	NAMED(MS_MANDLOCK),   NAMED(MS_DIRSYNC),     NAMED(MS_NOATIME),
	NAMED(MS_NODIRATIME), NAMED(MS_BIND),	     NAMED(MS_MOVE),
	NAMED(MS_REC),	      NAMED(MS_SILENT),	     NAMED(MS_POSIXACL),
	NAMED(MS_UNBINDABLE), NAMED(MS_PRIVATE),     NAMED(MS_SLAVE),
	NAMED(MS_SHARED),     NAMED(MS_RELATIME),    NAMED(MS_STRICTATIME),
	NAMED(MS_LAZYTIME),
};
static const struct named xattr_flags[] = { NAMED(XATTR_CREATE),
					    NAMED(XATTR_REPLACE) };
static const struct named range_flags[] = { NAMED(SYNC_FILE_RANGE_WAIT_BEFORE),
					    NAMED(SYNC_FILE_RANGE_WRITE),
					    NAMED(SYNC_FILE_RANGE_WAIT_AFTER) };
static const struct named file_advices[] = {
	NAMED(POSIX_FADV_NORMAL),     NAMED(POSIX_FADV_RANDOM),
	NAMED(POSIX_FADV_SEQUENTIAL), NAMED(POSIX_FADV_WILLNEED),
	NAMED(POSIX_FADV_DONTNEED),   NAMED(POSIX_FADV_NOREUSE),
};
static const struct named traces[] = {
	NAMED(PTRACE_TRACEME),	   NAMED(PTRACE_PEEKTEXT),
	NAMED(PTRACE_PEEKDATA),	   NAMED(PTRACE_POKETEXT),
	NAMED(PTRACE_POKEDATA),	   NAMED(PTRACE_CONT),
	NAMED(PTRACE_KILL),	   NAMED(PTRACE_SINGLESTEP),
	NAMED(PTRACE_GETREGS),	   NAMED(PTRACE_SETREGS),
	NAMED(PTRACE_ATTACH),	   NAMED(PTRACE_DETACH),
	NAMED(PTRACE_SYSCALL),	   NAMED(PTRACE_SETOPTIONS),
	NAMED(PTRACE_GETEVENTMSG), NAMED(PTRACE_GETSIGINFO),
	NAMED(PTRACE_SEIZE),	   NAMED(PTRACE_INTERRUPT),
	NAMED(PTRACE_LISTEN),
};
static const struct named arch_options[] = { { 0x1001, "ARCH_SET_GS" },
					     { 0x1002, "ARCH_SET_FS" },
					     { 0x1003, "ARCH_GET_FS" },
					     { 0x1004, "ARCH_GET_GS" } };
static const struct named barriers[] = {
	{ 0, "MEMBARRIER_CMD_QUERY" },
	{ 1, "MEMBARRIER_CMD_GLOBAL" },
	{ 2, "MEMBARRIER_CMD_GLOBAL_EXPEDITED" },
	{ 4, "MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED" },
	{ 8, "MEMBARRIER_CMD_PRIVATE_EXPEDITED" },
	{ 16, "MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED" },
};
static const struct named filters[] = { { 0, "SECCOMP_SET_MODE_STRICT" },
					{ 1, "SECCOMP_SET_MODE_FILTER" },
					{ 2, "SECCOMP_GET_ACTION_AVAIL" },
					{ 3, "SECCOMP_GET_NOTIF_SIZES" } };

/* With how many arguments each has; what is not here has five. */
static const struct named prctl_options[] = {
	NAMED(PR_SET_PDEATHSIG),
	NAMED(PR_GET_PDEATHSIG),
	NAMED(PR_GET_DUMPABLE),
	NAMED(PR_SET_DUMPABLE),
	NAMED(PR_GET_KEEPCAPS),
	NAMED(PR_SET_KEEPCAPS),
	NAMED(PR_SET_NAME),
	NAMED(PR_GET_NAME),
	NAMED(PR_GET_SECCOMP),
	NAMED(PR_SET_SECCOMP),
	NAMED(PR_CAPBSET_READ),
	NAMED(PR_CAPBSET_DROP),
	NAMED(PR_SET_TIMERSLACK),
	NAMED(PR_GET_TIMERSLACK),
	NAMED(PR_SET_CHILD_SUBREAPER),
	NAMED(PR_GET_CHILD_SUBREAPER),
	NAMED(PR_SET_NO_NEW_PRIVS),
	NAMED(PR_GET_NO_NEW_PRIVS),
	NAMED(PR_SET_THP_DISABLE),
	NAMED(PR_GET_THP_DISABLE),
	NAMED(PR_CAP_AMBIENT),
	{ PR_SET_PTRACER, "PR_SET_PTRACER" },
	NAMED(PR_SET_SECUREBITS),
	NAMED(PR_GET_SECUREBITS),
	{ 0x53564d41, "PR_SET_VMA" },
	NAMED(PR_SET_MM),
};

unsigned int trace_prctl_arguments(uint64_t option)
{
	switch (option) {
	case PR_GET_DUMPABLE:
	case PR_GET_KEEPCAPS:
	case PR_GET_SECCOMP:
	case PR_GET_TIMERSLACK:
	case PR_GET_SECUREBITS:
		return 1;
	case PR_SET_PDEATHSIG:
	case PR_GET_PDEATHSIG:
	case PR_SET_DUMPABLE:
	case PR_SET_KEEPCAPS:
	case PR_SET_NAME:
	case PR_GET_NAME:
	case PR_CAPBSET_READ:
	case PR_CAPBSET_DROP:
	case PR_SET_TIMERSLACK:
	case PR_SET_CHILD_SUBREAPER:
	case PR_GET_CHILD_SUBREAPER:
	case PR_SET_PTRACER:
	case PR_SET_SECUREBITS:
		return 2;
	case PR_SET_SECCOMP:
		return 3;
	default:
		return 5;
	}
}

struct by_call {
	unsigned short nr, argument;
	const struct named *names;
	size_t nr_names;
	const char *unknown;
};

#define OF(call, argument, names, unknown)                            \
	{                                                             \
		SYS_##call, argument, names, NR_NAMED(names), unknown \
	}

static const struct by_call by_call[] = {
	OF(msync, 2, sync_flags, "MS_???"),
	OF(mremap, 3, remap_flags, "MREMAP_???"),
	OF(mlockall, 0, lock_flags, "MCL_???"),
	OF(mlock2, 2, lock2_flags, "MLOCK_???"),
	OF(close_range, 2, close_flags, "CLOSE_RANGE_???"),
	OF(renameat2, 4, rename_flags, "RENAME_??"),
	OF(getrandom, 2, random_flags, "GRND_???"),
	OF(memfd_create, 1, memfd_flags, "MFD_???"),
	OF(splice, 5, splice_flags, "SPLICE_F_???"),
	OF(tee, 3, splice_flags, "SPLICE_F_???"),
	OF(vmsplice, 3, splice_flags, "SPLICE_F_???"),
	OF(preadv2, 5, rw_flags, "RWF_???"),
	OF(pwritev2, 5, rw_flags, "RWF_???"),
	OF(fallocate, 1, fallocate_modes, "FALLOC_FL_???"),
	OF(statx, 2, statx_syncs, NULL),
	OF(statx, 3, statx_masks, "STATX_???"),
	OF(inotify_add_watch, 2, watch_masks, "IN_???"),
	OF(getrusage, 0, usages, "RUSAGE_???"),
	OF(getpriority, 0, priorities, "PRIO_???"),
	OF(setpriority, 0, priorities, "PRIO_???"),
	OF(getitimer, 0, itimers, "ITIMER_???"),
	OF(setitimer, 0, itimers, "ITIMER_???"),
	OF(waitid, 0, id_types, "P_???"),
	OF(unshare, 0, clones, "CLONE_???"),
	OF(setns, 1, clones, "CLONE_NEW???"),
	OF(sched_setscheduler, 1, policies, "SCHED_???"),
	OF(sched_get_priority_max, 0, policies, "SCHED_???"),
	OF(sched_get_priority_min, 0, policies, "SCHED_???"),
	OF(shmget, 0, keys, NULL),
	OF(semget, 0, keys, NULL),
	OF(msgget, 0, keys, NULL),
	OF(shmget, 2, memory_flags, NULL),
	OF(semget, 2, get_flags, NULL),
	OF(msgget, 1, get_flags, NULL),
	OF(shmat, 2, attach_flags, "SHM_???"),
	OF(shmctl, 1, controls, "SHM_???"),
	OF(msgctl, 1, controls, "MSG_???"),
	OF(semctl, 2, sem_controls, "SEM_???"),
	OF(timer_settime, 1, timer_flags, "TIMER_???"),
	OF(clock_nanosleep, 1, timer_flags, "TIMER_???"),
	OF(timerfd_settime, 1, timerfd_flags, "TFD_???"),
	OF(umount2, 1, umount_flags, "MNT_???"),
	OF(mount, 3, mount_flags, "MS_???"),
	OF(setxattr, 4, xattr_flags, "XATTR_???"),
	OF(lsetxattr, 4, xattr_flags, "XATTR_???"),
	OF(fsetxattr, 4, xattr_flags, "XATTR_???"),
	OF(sync_file_range, 3, range_flags, "SYNC_FILE_RANGE_???"),
	OF(fadvise64, 3, file_advices, "POSIX_FADV_???"),
	OF(ptrace, 0, traces, "PTRACE_???"),
	OF(arch_prctl, 0, arch_options, "ARCH_???"),
	OF(membarrier, 0, barriers, "MEMBARRIER_CMD_???"),
	OF(seccomp, 0, filters, "SECCOMP_SET_MODE_???"),
	OF(prctl, 0, prctl_options, "PR_???"),
};

static const struct by_call *find(unsigned int nr, unsigned int argument)
{
	for (size_t i = 0; i < sizeof(by_call) / sizeof(*by_call); i++)
		if (by_call[i].nr == nr && by_call[i].argument == argument)
			return &by_call[i];
	return NULL;
}

void trace_print_statx_mask(struct text *text, unsigned int mask)
{
	text_flags(text, mask, statx_masks, NR_NAMED(statx_masks), "STATX_???");
}

/* IPC_CREAT|0600 */
static void print_get_flags(struct text *text, uint64_t value,
			    const struct by_call *by)
{
	if (value & ~0777ul) {
		text_flags(text, value & ~0777ul, by->names, by->nr_names,
			   NULL);
		text_add(text, "|");
	}
	trace_print_mode(text, (unsigned int)value & 0777);
}

/* How exact it is to be, and then flags. */
static void print_statx_flags(struct text *text, uint64_t value)
{
	text_one(text, value & 0x6000, statx_syncs, NR_NAMED(statx_syncs),
		 "AT_STATX_???");
	if (value & ~0x6000ul) {
		text_add(text, "|");
		trace_print_flags(text, '@', value & ~0x6000ul, SYS_statx, 0);
	}
}

static void print_prctl(struct text *text, const struct trace_arg *a)
{
	static const struct named dumps[] = { { 0, "SUID_DUMP_DISABLE" },
					      { 1, "SUID_DUMP_USER" } };
	uint64_t value = a->record->args[a->i];
	char name[16];

	switch (a->record->args[0]) {
	case PR_SET_NAME:
	case PR_GET_NAME:
		trace_print_text(text, a, value, sizeof(name));
		break;
	case PR_SET_PDEATHSIG:
		text_add(text, "%s",
			 value ? trace_signal_name((int)value, name) : "0");
		break;
	case PR_SET_DUMPABLE:
		text_one(text, value, dumps, NR_NAMED(dumps), NULL);
		break;
	case PR_SET_KEEPCAPS:
	case PR_SET_CHILD_SUBREAPER:
	case PR_SET_NO_NEW_PRIVS:
	case PR_SET_TIMERSLACK:
		text_add(text, "%lu", value);
		break;
	default:
		text_add(text, value ? "%#lx" : "0", value);
	}
}

void trace_print_by_call(struct text *text, const struct trace_arg *a)
{
	uint64_t value = (uint32_t)a->record->args[a->i];
	const struct by_call *by = find(a->record->nr, a->i);

	if (a->kind == '_')
		print_prctl(text, a);
	else if (!by)
		text_add(text, value ? "%#lx" : "0", value);
	else if (by->names == get_flags || by->names == memory_flags)
		print_get_flags(text, value, by);
	else if (by->names == statx_syncs)
		print_statx_flags(text, value);
	else if (a->kind == '|')
		text_flags(text, value, by->names, by->nr_names, by->unknown);
	else
		text_one(text,
			 by->names == usages ? (uint64_t)(int)value : value,
			 by->names, by->nr_names, by->unknown);
}

void trace_print_meaning(struct text *text,
			 const struct flexsc_trace_record *end)
{
	char name[16];

	switch (end->nr) {
	case SYS_sched_getscheduler:
		text_add(text, " (");
		text_one(text, (uint64_t)end->ret, policies, NR_NAMED(policies),
			 NULL);
		text_add(text, ")");
		break;
	case SYS_rt_sigtimedwait:
		if (end->ret > 0)
			text_add(text, " (%s)",
				 trace_signal_name((int)end->ret, name));
		break;
	case SYS_prctl:
		if (end->args[0] == PR_GET_DUMPABLE)
			text_add(text, end->ret ? " (SUID_DUMP_USER)" :
						  " (SUID_DUMP_DISABLE)");
		break;
	default:
		break;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Posts random calls with random arguments for some seconds, in a process
 * that can do no harm: another user, an empty folder, no signals, none of the
 * calls that touch the machine or pull the ground from under the process.
 * Whatever the kernel makes of them, each must complete exactly once.
 *
 *	fuzz-calls ENGINE [SECONDS [SEED]]
 *
 * It does not look at what a call did: that is for tests/conformance.
 */
#include "base/types.h"
#include "call/table.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_SLOTS 64
#define NR_FDS 32 /* 0 to 31 are the calls', the library's come after */
#define ARENA_BYTES (1u << 20)
#define NOBODY 65534
#define MS 1000000ll

/* Harm the machine, or memory, signals or limits of this very process. */
static const uint16_t denied[] = {
	/* memory and threads */
	SYS_mmap, SYS_munmap, SYS_mprotect, SYS_brk, SYS_mremap, SYS_madvise,
	SYS_remap_file_pages, SYS_mlockall, SYS_mbind, SYS_set_mempolicy,
	SYS_migrate_pages, SYS_move_pages, SYS_modify_ldt, SYS_arch_prctl,
	SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_pkey_mprotect,
	SYS_pkey_alloc, SYS_pkey_free, SYS_userfaultfd, SYS_process_vm_writev,
	SYS_process_vm_readv, SYS_process_madvise, SYS_membarrier, SYS_prctl,
	450, 453 /* map_shadow_stack */, 462 /* mseal */,
	/* tells where the thread's own memory is: others would write there */
	SYS_get_robust_list,
	/* signals and timers */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_kill,
	SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
	SYS_pidfd_send_signal, SYS_alarm, SYS_setitimer, SYS_timer_create,
	SYS_timer_settime, SYS_mq_notify, SYS_fcntl, SYS_ioctl,
	448 /* process_mrelease */,
	/* the process and where it is */
	SYS_setrlimit, SYS_prlimit64, SYS_chdir, SYS_fchdir, SYS_chroot,
	SYS_setpgid, SYS_setsid, SYS_setpriority, SYS_ioprio_set,
	SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_setaffinity,
	SYS_sched_setattr, SYS_personality, SYS_iopl, SYS_ioperm,
	SYS_close_range, SYS_vhangup, SYS_pidfd_getfd,
	/* what outlives it */
	SYS_shmget, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_semget, SYS_semop,
	SYS_semctl, SYS_semtimedop, SYS_msgget, SYS_msgsnd, SYS_msgrcv,
	SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_add_key, SYS_request_key,
	SYS_keyctl,
	/* the machine */
	SYS_sync, SYS_syncfs, SYS_syslog, SYS_reboot, SYS_acct, SYS_swapon,
	SYS_swapoff, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_sethostname,
	SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex,
	SYS_clock_adjtime, SYS_init_module, SYS_finit_module,
	SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_quotactl,
	SYS_quotactl_fd, SYS_bpf, SYS_perf_event_open, SYS_open_tree,
	SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
	SYS_mount_setattr, SYS_fanotify_init, SYS_fanotify_mark, SYS_ustat,
	SYS_sysfs, SYS_open_by_handle_at, 467 /* open_tree_attr */,
};

static struct slot {
	struct flexsc_event ev;
	unsigned int nr;
	unsigned long nr_posted, nr_done;
} slots[NR_SLOTS];

static struct flexsc_loop *loop;
static uint8_t *arena;
static uint64_t random_state;
static bool sync_engine;
static int output = 1; /* out of reach of the calls */
static unsigned long nr_calls, nr_succeeded;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(random_next() >> 33) % n;
}

static void fail(const struct slot *slot, const char *what)
{
	dprintf(output, "# call %u, result %lld: %s\n", slot ? slot->nr : 0,
		slot ? (long long)slot->ev.ret : 0, what);
	_exit(EXIT_FAILURE);
}

/* Which calls --------------------------------------------------------------- */

static bool refused(unsigned int nr)
{
	return nr >= FX_NR_CALLS || flexsc_refusal(nr) ||
	       fx_call_table[nr].call_class == FX_CALL_ABSENT;
}

static bool harmless(unsigned int nr)
{
	if (refused(nr))
		return true; /* not carried out: that is the test */
	for (size_t i = 0; i < FX_ARRAY_SIZE(denied); i++)
		if (denied[i] == nr)
			return false;
	/* Nobody could end what waits for ever there, as opening a FIFO. */
	return !sync_engine ||
	       ((fx_call_table[nr].call_class == FX_CALL_NEVER ||
		 fx_call_table[nr].call_class == FX_CALL_DISK) &&
		nr != SYS_mknod && nr != SYS_mknodat);
}

static unsigned int choose_number(void)
{
	static const unsigned int odd[] = {
		FX_NR_CALLS, 65535, 65536 + SYS_getpid,
		0x40000000u + SYS_getpid, UINT32_MAX,
	};
	unsigned int nr;

	if (below(50) == 0)
		return odd[below(FX_ARRAY_SIZE(odd))];
	do
		nr = below(FX_NR_CALLS);
	while (!harmless(nr) || (refused(nr) && below(8)));
	return nr;
}

/* 32 to 63 would be the library's descriptors. */
static long choose_argument(void)
{
	static const long numbers[] = { 0, 1, 2, 3, 7, 8, 16, 64, 100, 1000,
					65535, -1, -2, -100, INT32_MIN };

	switch (below(8)) {
	case 0:
	case 1:
		return below(NR_FDS);
	case 2:
	case 3:
		return (long)(arena + below(ARENA_BYTES / 2 / 64) * 64);
	case 4: /* "a" to "d", written once and again */
		return (long)(arena + ARENA_BYTES - 64 + below(4) * 2);
	case 5:
		return below(2) ? 0 : (long)below(32);
	default:
		return numbers[below(FX_ARRAY_SIZE(numbers))];
	}
}

static void write_names(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		arena[ARENA_BYTES - 64 + 2 * i] = (uint8_t)('a' + i);
		arena[ARENA_BYTES - 63 + 2 * i] = 0;
	}
}

/* Posting ------------------------------------------------------------------- */

static void done(struct flexsc_event *ev)
{
	struct slot *slot = (struct slot *)ev;

	if (++slot->nr_done != slot->nr_posted)
		fail(slot, "handler called more often than posted");
	if (flexsc_pending(ev))
		fail(slot, "pending in its handler");
	if (refused(slot->nr) && ev->ret != -ENOSYS &&
	    ev->ret != -EOPNOTSUPP && ev->ret != -ECANCELED &&
	    ev->ret != -ETIMEDOUT)
		fail(slot, "carried out though it cannot be");
	nr_succeeded += ev->ret >= 0;
}

static struct slot *idle_slot(void)
{
	struct slot *slot = &slots[below(NR_SLOTS)];

	return flexsc_pending(&slot->ev) ? NULL : slot;
}

static void post(struct slot *slot, bool in_chain, bool first)
{
	long args[6];
	int ret, descriptor;

	slot->nr = choose_number();
	slot->ev.handler = done;
	slot->ev.timeout_ns = below(3) ? 0 : 1 + below(5 * MS);
	for (unsigned int i = 0; i < 6; i++)
		args[i] = choose_argument();
	descriptor = slot->nr < FX_NR_CALLS ? fx_call_table[slot->nr].fd_arg :
					      -1;
	if (descriptor >= 0 && below(8))
		args[descriptor] = below(NR_FDS);
	if (in_chain && !first && below(3) == 0)
		args[below(6)] = FLEXSC_RESULT(0);
	slot->nr_posted++;
	nr_calls++;
	errno = 12345;
	ret = flexsc_post(&slot->ev, slot->nr, args[0], args[1], args[2],
			  args[3], args[4], args[5]);
	if (errno != 12345)
		fail(slot, "posting changed errno");
	if (ret && !in_chain)
		fail(slot, strerror(-ret));
	if (ret) /* the chain's end will say so */
		slot->nr_posted--;
}

/* A chain that is refused has posted nothing. */
static void post_chain(void)
{
	struct slot *in[4];
	unsigned int nr = 0;

	if (flexsc_chain_begin())
		fail(NULL, "flexsc_chain_begin");
	for (unsigned int i = 0; i < FX_ARRAY_SIZE(in); i++) {
		struct slot *slot = idle_slot();
		bool twice = !slot;

		for (unsigned int j = 0; j < nr; j++)
			twice |= in[j] == slot;
		if (twice)
			continue;
		in[nr] = slot;
		post(slot, true, nr == 0);
		nr++;
		if (below(4) == 0)
			flexsc_chain_finally();
	}
	if (flexsc_chain_end())
		for (unsigned int i = 0; i < nr; i++)
			in[i]->nr_posted = in[i]->nr_done;
}

static void step(void)
{
	struct slot *slot = idle_slot();

	if (below(10) == 0)
		post_chain();
	else if (slot)
		post(slot, false, false);
	if (below(4) == 0)
		flexsc_cancel(&slots[below(NR_SLOTS)].ev);
	if (below(4) == 0)
		flexsc_loop_poll(loop, below(4) ? 0 : (int64_t)below(MS));
	if (below(100) == 0)
		write_names();
}

/* The process --------------------------------------------------------------- */

static int random_descriptor(unsigned int i)
{
	int pair[2] = { -1, -1 };

	switch (i % 8) {
	case 0:
		return eventfd(below(2), EFD_CLOEXEC);
	case 1:
		return epoll_create1(EPOLL_CLOEXEC);
	case 2:
	case 3:
		return open("a", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	case 4:
		return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	case 5:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 6:
		return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -1 : pair[0];
	default:
		return pipe(pair) ? -1 : pair[i / 8 & 1];
	}
}

static bool make_descriptors(void)
{
	output = fcntl(1, F_DUPFD_CLOEXEC, 500);
	for (unsigned int i = 0; i < NR_FDS; i++) {
		int fd = random_descriptor(i);

		if (fd < 0 || (fd != (int)i && dup2(fd, (int)i) < 0))
			return false;
	}
	for (int fd = NR_FDS; fd < 200; fd++)
		close(fd);
	return output >= 0;
}

static void confine(void)
{
	struct rlimit size = { 256 << 20, 256 << 20 };
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (geteuid() != 0)
		return;
	if (chown(".", NOBODY, NOBODY) || setgroups(0, NULL) ||
	    setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		fail(NULL, "cannot become another user");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void fuzz(const char *engine, unsigned int seconds)
{
	struct flexsc_options options = { .size = sizeof(options),
					  .engine = engine };
	time_t end = time(NULL) + seconds;

	confine();
	/* Sizes are random too: what follows the arena stops the kernel. */
	arena = mmap(NULL, 2 * ARENA_BYTES, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED ||
	    mprotect(arena, ARENA_BYTES, PROT_READ | PROT_WRITE))
		fail(NULL, "no memory");
	write_names();
	fflush(stdout);
	if (!make_descriptors())
		fail(NULL, "no descriptors");
	if (flexsc_loop_new(&loop, &options))
		fail(NULL, "no loop");
	if (strcmp(flexsc_loop_engine(loop), engine) != 0)
		_exit(77);
	sync_engine = strcmp(engine, "sync") == 0;
	while (time(NULL) < end)
		for (unsigned int i = 0; i < 100; i++)
			step();
	if (flexsc_loop_shutdown(loop) || flexsc_loop_outstanding(loop))
		fail(NULL, "flexsc_loop_shutdown");
	for (unsigned int i = 0; i < NR_SLOTS; i++)
		if (slots[i].nr_done != slots[i].nr_posted)
			fail(&slots[i], "never completed");
	if (flexsc_loop_free(loop))
		fail(NULL, "flexsc_loop_free");
	dprintf(output, "# %lu calls, %lu succeeded\n", nr_calls, nr_succeeded);
	_exit(EXIT_SUCCESS);
}

static void remove_folder(const char *folder)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		printf("# %s is left\n", folder);
}

/* Exit status of the child; 124 if its time was over. */
static int await(pid_t pid, unsigned int seconds)
{
	int status = 0;

	for (unsigned int i = 0; i < seconds * 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (WIFSIGNALED(status))
				printf("# killed by signal %d\n",
				       WTERMSIG(status));
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
		}
		usleep(10000);
	}
	printf("# still running after %u s\n", seconds);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return 124;
}

int main(int argc, char **argv)
{
	const char *engine = argc > 1 ? argv[1] : "poll";
	unsigned int seconds = argc > 2 ? (unsigned int)atoi(argv[2]) : 5;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) :
				   (uint64_t)time(NULL) * 2654435761u +
					   (uint64_t)getpid();
	char folder[] = "/tmp/flexsc-fuzz-XXXXXX";
	pid_t pid;
	int status;

	random_state = seed | 1;
	printf("# %s, %u s, seed %llu\n", engine, seconds,
	       (unsigned long long)seed);
	fflush(stdout);
	if (!mkdtemp(folder))
		return EXIT_FAILURE;
	pid = fork();
	if (pid == 0) {
		if (chdir(folder))
			_exit(2);
		fuzz(engine, seconds);
	}
	status = pid < 0 ? EXIT_FAILURE : await(pid, seconds + 60);
	remove_folder(folder);
	if (status && status != 77)
		printf("# failed with status %d\n", status);
	return status;
}

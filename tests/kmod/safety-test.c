/* SPDX-License-Identifier: MIT */
/*
 * Nothing becomes possible through a page set that is not possible through
 * the call itself: who may use a set, whose calls are refused as a whole, and
 * whose identity and limits a call is carried out with.
 */
#include "cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Every request on somebody else's set. */
static void refused(int fd, int error)
{
	struct flexsc_register set = { .version = FLEXSC_ABI_VERSION,
				       .max_entries = 64 };
	struct flexsc_wait wait = { .idle_ns = 1000 };

	CHECK(request(fd, FLEXSC_IOC_REGISTER, ARG(&set)) < 0);
	CHECK_EQ(request(fd, FLEXSC_IOC_RUN, 0), error);
	CHECK_EQ(request(fd, FLEXSC_IOC_WAIT, ARG(&wait)), error);
	CHECK_EQ(request(fd, FLEXSC_IOC_CANCEL, 0), error);
	CHECK_EQ(request(fd, FLEXSC_IOC_CLOSING, 0), error);
	CHECK_EQ(request(fd, FLEXSC_IOC_STOP, 0), error);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
}

static void forked(void *arg)
{
	struct kset *set = arg;
	unsigned char resident;

	refused(set->fd, -EPERM);
	/* The mapping has not come along. */
	CHECK(mincore(set->shared, 4096, &resident) < 0 && errno == ENOMEM);
	set->fd = -1;
}

static void forked_child(void)
{
	struct kset set;
	char byte;
	int sv[2];
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	POST(&set, 1, SYS_read, sv[0], ARG(&byte), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	POST(&set, 2, SYS_getppid);
	in_child(forked, &set);
	/* Nor has the child taken anything away. */
	CHECK_EQ(kset_next(&set, &index), getppid());
	CHECK_EQ(write(sv[1], "x", 1), 1);
	CHECK_EQ(kset_next(&set, &index), 1);
	kset_fini(&set);
}

/* The parent is gone; its set must not outlive it in the child's hands. */
static void orphaned_child(void)
{
	struct kset set;
	int done[2], status;
	char byte = 0;
	pid_t parent;

	CHECK_EQ(pipe(done), 0);
	parent = fork();
	if (!parent) {
		CHECK_EQ(kset_init(&set, 64, 1), 0);
		if (!fork()) {
			close(done[0]);
			while (getppid() != 1)
				sleep_ms(5);
			sleep_ms(50);
			CHECK(request(set.fd, FLEXSC_IOC_RUN, 0) < 0);
			CHECK(mmap(NULL, set.map_size, PROT_READ, MAP_SHARED,
				   set.fd, 0) == MAP_FAILED);
			CHECK_EQ(write(done[1], "y", 1), 1);
			_exit(0);
		}
		_exit(0);
	}
	close(done[1]);
	waitpid(parent, &status, 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(read(done[0], &byte, 1), 1);
	CHECK_EQ(byte, 'y');
}

static int receive(int from)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd = -1;

	CHECK_EQ(recvmsg(from, &message, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int pass_message(struct msghdr *message, struct iovec *part,
			char *control, int fd)
{
	struct cmsghdr *head = (struct cmsghdr *)control;

	*part = (struct iovec){ "x", 1 };
	*message = (struct msghdr){ .msg_iov = part,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = CMSG_SPACE(sizeof(int)) };
	head->cmsg_len = CMSG_LEN(sizeof(int));
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return 0;
}

static void passed_descriptor(void)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct msghdr message;
	struct iovec part;
	struct kset set;
	int sv[2], status;
	pid_t child;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	child = fork();
	if (!child) {
		refused(receive(sv[1]), -EPERM);
		_exit(0);
	}
	CHECK_EQ(kset_init(&set, 64, 1), 0);
	pass_message(&message, &part, control, set.fd);
	/* Posted, to begin with: passing descriptors works as ever. */
	CHECK_EQ(CALL(&set, SYS_sendmsg, sv[0], ARG(&message), 0), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	kset_fini(&set);
}

/* Sent over itself and closed: the set must not live on in the socket. */
static void sent_to_itself(void)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct flexsc_stats before, after;
	struct msghdr message;
	struct iovec part;
	struct kset set;
	int sv[2], fd;

	fd = open(FLEXSC_DEVICE, O_RDWR | O_CLOEXEC);
	CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&before)), 0);
	CHECK_EQ(kset_init(&set, 64, 1), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	POST(&set, 1, SYS_read, sv[0], ARG(control), 1);
	CHECK_EQ(kset_run(&set, 0), 0);
	pass_message(&message, &part, control, set.fd);
	CHECK_EQ(sendmsg(sv[0], &message, 0), 1);
	kset_fini(&set);
	close(sv[0]);
	close(sv[1]);
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(request(fd, FLEXSC_IOC_STATS, ARG(&after)), 0);
		if (after.sets == before.sets && after.calls == before.calls)
			return;
		sleep_ms(10);
	}
	CHECK_EQ(after.sets, before.sets);
	CHECK_EQ(after.calls, before.calls);
}

/* What a program finds that was executed with the descriptor open. */
static void executed(void)
{
	struct kset set;
	char number[20];
	pid_t child;
	int status;

	if (getenv("KMOD_TEST_FD")) /* this is it: see main() */
		return;
	child = fork();
	if (!child) {
		CHECK_EQ(kset_init(&set, 64, 1), 0);
		CHECK_EQ(fcntl(set.fd, F_SETFD, 0), 0);
		snprintf(number, sizeof(number), "%d", set.fd);
		setenv("KMOD_TEST_FD", number, 1);
		execl("/proc/self/exe", "executed", NULL);
		_exit(2);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static int forbid(int nr, uint32_t action, unsigned flags)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, steps };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags,
			    &program);
}

/* Whatever the filter answers: the call has not happened unseen. */
static void filtered_poster(void)
{
	static const uint32_t actions[] = {
		SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_KILL_THREAD,
		SECCOMP_RET_TRAP,	   SECCOMP_RET_TRACE,
		SECCOMP_RET_LOG,
	};
	struct kset set;
	uint32_t index;
	int64_t ret;

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	POST(&set, 0, SYS_mkdir, ARG("/run/made"), 0700);
	for (unsigned i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		CHECK_EQ(forbid(SYS_mkdir, actions[i], 0), 0);
		CHECK_EQ(kset_run(&set, 0), -EACCES);
		CHECK(!kset_reap(&set, &index, &ret));
		CHECK(access("/run/made", F_OK) < 0);
	}
	_exit(0);
}

static void filtered_registration(void)
{
	struct kset set;

	CHECK_EQ(forbid(SYS_mkdir, SECCOMP_RET_ERRNO | EPERM, 0), 0);
	CHECK_EQ(kset_init(&set, 64, 1), -EACCES);
}

/* A thread lent before the filter came must not go on serving after it. */
static void filtered_while_lent(void)
{
	struct lent lent;
	struct kset set;
	uint32_t index;
	int64_t ret;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lend(&lent, &set, FLEXSC_WAIT_POLL);
	sleep_ms(100);
	CHECK_EQ(forbid(SYS_mkdir, SECCOMP_RET_ERRNO | EPERM,
			SECCOMP_FILTER_FLAG_TSYNC),
		 0);
	POST(&set, 0, SYS_mkdir, ARG("/run/made2"), 0700);
	request(set.fd, FLEXSC_IOC_KICK, 0);
	CHECK_EQ(unlend(&lent), -EACCES);
	CHECK(!kset_reap(&set, &index, &ret) || ret < 0);
	CHECK(access("/run/made2", F_OK) < 0);
	_exit(0);
}

static void traced_self(void *arg)
{
	struct kset *set = arg, own;

	CHECK_EQ(kset_init(&own, 64, 0), 0);
	CHECK_EQ(set->fd, set->fd);
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
	raise(SIGSTOP); /* from now on the parent sees each call */
	POST(&own, 0, SYS_mkdir, ARG("/run/made3"), 0700);
	if (kset_run(&own, 0) != -EACCES)
		_exit(3);
	_exit(0);
}

/* A debugger that sees system calls does not miss posted ones. */
static void traced_poster(void)
{
	struct kset set = { 0 };
	int status;
	pid_t child = fork();

	if (!child)
		traced_self(&set);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSTOPPED(status));
	while (WIFSTOPPED(status)) {
		CHECK_EQ(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
	}
	CHECK_EQ(status, 0);
	CHECK(access("/run/made3", F_OK) < 0);
}

/* Identity is that of the thread that runs, as it is then. */
static void credentials(void)
{
	struct kset set;
	struct stat made;

	CHECK_EQ(kset_init(&set, 64, 1), 0);
	unlink("/run/cred");
	CHECK_EQ(chmod("/run", 0777), 0);
	CHECK_EQ(syscall(SYS_setgroups, 0, NULL), 0);
	CHECK_EQ(syscall(SYS_setresgid, 1234, 1234, 1234), 0);
	CHECK_EQ(syscall(SYS_setresuid, 1234, 1234, 1234), 0);
	CHECK_EQ(CALL(&set, SYS_openat, ARG(AT_FDCWD), ARG("/etc/shadow"), 0),
		 -EACCES);
	CHECK_EQ(CALL(&set, SYS_mknodat, ARG(AT_FDCWD), ARG("/run/cred"),
		      S_IFREG | 0600, 0),
		 0);
	CHECK_EQ(stat("/run/cred", &made), 0);
	CHECK_EQ(made.st_uid, 1234);
	CHECK_EQ(CALL(&set, SYS_kill, 1, 0), -EPERM);
	kset_fini(&set);
}

/* A lent thread with other rights than the owner's carries nothing out. */
static void *lend_as_root(void *arg)
{
	struct lent *lent = arg;
	struct flexsc_wait wait = { 0 };

	sleep_ms(300); /* the owner has become somebody else by now */
	do {
		lent->result =
			request(lent->set->fd, FLEXSC_IOC_WAIT, ARG(&wait));
	} while (lent->result == -EINTR);
	return NULL;
}

static void other_credentials(void)
{
	struct timespec moment = { .tv_nsec = 1000000 };
	struct lent lent = { 0 };
	struct kset set;
	uint32_t index;
	int64_t ret;

	CHECK_EQ(kset_init(&set, 64, 2), 0);
	lent.set = &set;
	CHECK_EQ(pthread_create(&lent.thread, NULL, lend_as_root, &lent), 0);
	/* This thread only: not as the C library does it. */
	CHECK_EQ(syscall(SYS_setresuid, 1234, 1234, 1234), 0);
	POST(&set, 1, SYS_nanosleep, ARG(&moment), 0);
	CHECK(kset_run(&set, 0) >= 0);
	CHECK_EQ(unlend(&lent), -EACCES);
	CHECK(!kset_reap(&set, &index, &ret));
	kset_fini(&set);
}

static void limits(void)
{
	struct rlimit none = { 0, 0 }, few = { 3, 3 };
	char page[4096] = "";
	struct kset set;
	int fd = open("/run/limit", O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
	/* And without the signal that a plain call would raise. */
	CHECK_EQ(CALL(&set, SYS_write, fd, ARG(page), sizeof(page)), -EFBIG);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_EQ(CALL(&set, SYS_dup, 1), -EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	CHECK_EQ(prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0), 0);
	unlink("/run/limit");
	kset_fini(&set);
}

/* As a call and as a posted call: the same, or refused. */
static void same_or_refused(struct kset *set, unsigned nr, const uint64_t *args)
{
	long plain = syscall(nr, args[0], args[1], args[2], args[3], args[4],
			     args[5]);
	int64_t posted;

	if (plain < 0)
		plain = -errno;
	posted = CALL(set, nr, args[0], args[1], args[2], args[3], args[4],
		      args[5]);
	if (posted == -EOPNOTSUPP)
		return;
	if (nr == SYS_open && plain >= 0 && posted >= 0) {
		close((int)plain);
		close((int)posted);
		return;
	}
	if (posted != plain)
		fail(__FILE__, __LINE__, "number %u: %lld, plain %ld", nr,
		     (long long)posted, plain);
}

#define SAME(set, nr, ...) \
	same_or_refused(set, nr, (uint64_t[6]){ __VA_ARGS__ })

static void privileged_calls(void)
{
	struct kset own, *set = &own;
	struct lent lent;
	static const char name[] = "elsewhere";
	struct timespec now = { 1000000000, 0 };
	struct rlimit more = { 1 << 22, 1 << 22 };
	char map[100];

	CHECK_EQ(kset_init(set, 64, 1), 0);
	lend(&lent, set, 0);
	SAME(set, SYS_mount, ARG("none"), ARG("/mnt"), ARG("tmpfs"), 0, 0);
	SAME(set, SYS_umount2, ARG("/proc"), 0);
	SAME(set, SYS_pivot_root, ARG("/"), ARG("/mnt"));
	SAME(set, SYS_chroot, ARG("/proc/self/absent"));
	SAME(set, SYS_sethostname, ARG(name), 9);
	SAME(set, SYS_setdomainname, ARG(name), 9);
	SAME(set, SYS_reboot, 0xfee1dead, 672274793, 0, 0);
	SAME(set, SYS_swapon, ARG("/absent"), 0);
	SAME(set, SYS_settimeofday, ARG(&now), 0);
	SAME(set, SYS_clock_settime, 0, ARG(&now));
	SAME(set, SYS_adjtimex, 0);
	SAME(set, SYS_init_module, 0, 0, ARG(""));
	SAME(set, SYS_finit_module, ARG(-1), ARG(""), 0);
	SAME(set, SYS_delete_module, ARG("flexsc"), O_NONBLOCK);
	SAME(set, SYS_kexec_load, 0, 0, 0, 0);
	SAME(set, SYS_ioperm, 0x70, 1, 1);
	SAME(set, SYS_iopl, 3);
	SAME(set, SYS_syslog, 3, ARG(map), 10);
	SAME(set, SYS_acct, ARG("/absent"));
	SAME(set, SYS_quotactl, 0, 0, 0, 0);
	SAME(set, SYS_setrlimit, 7, ARG(&more));
	SAME(set, SYS_prlimit64, 1, 7, ARG(&more), 0);
	SAME(set, SYS_bpf, 0, ARG(map), 8);
	SAME(set, SYS_perf_event_open, ARG(map), 1, ARG(-1), ARG(-1), 0);
	SAME(set, SYS_process_vm_readv, 1, ARG(map), 1, ARG(map), 1, 0);
	SAME(set, SYS_ptrace, 16, 1, 0, 0);
	SAME(set, SYS_kill, 1, 0);
	SAME(set, SYS_open_by_handle_at, ARG(-100), ARG(map), 0);
	SAME(set, SYS_chown, ARG("/etc/passwd"), 5, 5);
	SAME(set, SYS_open, ARG("/etc/shadow"), O_RDWR, 0);
	SAME(set, SYS_open, ARG("/dev/mem"), O_RDONLY, 0);
	SAME(set, SYS_unshare, CLONE_NEWNET);
	SAME(set, SYS_setns, ARG(-1), CLONE_NEWNET);
	SAME(set, SYS_setpriority, 0, 0, ARG(-10));
	SAME(set, SYS_mlockall, 1);
	request(set->fd, FLEXSC_IOC_STOP, 0);
	unlend(&lent);
	kset_fini(set);
}

/* What Docker and Podman leave a container's root. */
static const int container_caps[] = {
	CAP_CHOWN,   CAP_DAC_OVERRIDE,	   CAP_FOWNER,	   CAP_FSETID,
	CAP_KILL,    CAP_SETGID,	   CAP_SETUID,	   CAP_SETPCAP,
	CAP_MKNOD,   CAP_NET_RAW,	   CAP_SYS_CHROOT, CAP_AUDIT_WRITE,
	CAP_SETFCAP, CAP_NET_BIND_SERVICE,
};

static void drop_to_container(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (unsigned i = 0; i < sizeof(container_caps) / sizeof(int); i++)
		data[0].permitted |= 1u << container_caps[i];
	data[0].effective = data[0].permitted;
	for (int cap = 0; cap <= 63; cap++)
		if (cap > 31 || !(data[0].permitted >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	CHECK_EQ(syscall(SYS_capset, &head, data), 0);
}

static void container(void)
{
	CHECK_EQ(unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC |
			 CLONE_NEWNET | CLONE_NEWCGROUP),
		 0);
	CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	drop_to_container();
	privileged_calls();
}

/* Root in a user namespace of its own, and nobody outside. */
static void user_namespace(void)
{
	int fd;

	CHECK_EQ(chmod(FLEXSC_DEVICE, 0666), 0);
	CHECK_EQ(setgid(1234), 0);
	CHECK_EQ(setuid(1234), 0);
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET))
		skip("no user namespaces");
	fd = open("/proc/self/uid_map", O_WRONLY);
	CHECK_EQ(write(fd, "0 1234 1", 8), 8);
	close(fd);
	CHECK_EQ(getuid(), 0);
	privileged_calls();
}

/* As many sets as one user may have, and no more; then all are given back. */
static void many_sets(void)
{
	struct kset *sets = calloc(2000, sizeof(*sets));
	unsigned nr = 0;
	int bad = 0;

	CHECK_EQ(chmod(FLEXSC_DEVICE, 0666), 0);
	CHECK_EQ(setuid(4321), 0);
	while (nr < 1000 && !bad)
		bad = kset_init(&sets[nr++], 64, 1);
	CHECK_EQ(bad, -EDQUOT);
	nr--;
	CHECK(nr > 4);
	kset_fini(&sets[--nr]);
	CHECK_EQ(kset_init(&sets[nr++], 64, 1), 0);
	while (nr)
		kset_fini(&sets[--nr]);
}

static void *in_thread(void *arg)
{
	struct kset *set = arg;

	return (void *)(uintptr_t)-kset_run(set, 0);
}

/* Another thread of the process is the same process. */
static void another_thread(void)
{
	struct kset set;
	pthread_t thread;
	uint32_t index;
	int64_t ret = 0;
	void *result;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	POST(&set, 0, SYS_getpid);
	CHECK_EQ(pthread_create(&thread, NULL, in_thread, &set), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(!result);
	CHECK(kset_reap(&set, &index, &ret));
	CHECK_EQ(ret, getpid());
	kset_fini(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(forked_child),
		CASE(orphaned_child),
		CASE(passed_descriptor),
		CASE(sent_to_itself),
		CASE(executed),
		CASE(filtered_poster),
		CASE(filtered_registration),
		CASE(filtered_while_lent),
		CASE(traced_poster),
		CASE(credentials),
		CASE(other_credentials),
		CASE(limits),
		CASE(container),
		CASE(user_namespace),
		CASE(many_sets),
		CASE(another_thread),
	};
	const char *inherited = getenv("KMOD_TEST_FD");

	if (inherited) {
		refused(atoi(inherited), -EPERM);
		return 0;
	}
	return run_cases(cases, sizeof(cases) / sizeof(*cases));
}

/* SPDX-License-Identifier: MIT */
/*
 * What flexsc(4) says of those whose calls somebody else wants to see or to
 * bound, where an administrator can decide, and that it is as it says.
 */
#include "cases.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A parameter of the module; what it was before is returned. */
static long parameter(const char *name, const char *value)
{
	char path[100], before[20] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/module/flexsc/parameters/%s", name);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	CHECK(read(fd, before, sizeof(before) - 1) > 0);
	CHECK_EQ(pwrite(fd, value, strlen(value), 0), strlen(value));
	close(fd);
	return atol(before);
}

static void posts_mkdir(const char *name, int wanted)
{
	struct kset set;
	long ran;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
	raise(SIGSTOP);
	POST(&set, 0, SYS_mkdir, ARG(name), 0700);
	ran = kset_run(&set, 0);
	_exit(ran == wanted ? 0 : 3);
}

/* Runs it under a debugger that goes on by @how. */
static void debugged(const char *name, int wanted, int how)
{
	pid_t child = fork();
	int status;

	if (!child)
		posts_mkdir(name, wanted);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSTOPPED(status));
	while (WIFSTOPPED(status)) {
		CHECK_EQ(ptrace(how, child, 0, 0), 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
	}
	CHECK_EQ(status, 0);
	CHECK_EQ(rmdir(name), wanted ? -1 : 0);
}

/* Attached, but not for system calls: there is nothing that it would miss. */
static void attached_debugger(void)
{
	debugged("/run/policy1", 0, PTRACE_CONT);
}

/* By default refused; the administrator may say otherwise. */
static void tracing_debugger(void)
{
	debugged("/run/policy2", -EACCES, PTRACE_SYSCALL);
	parameter("traced", "1");
	debugged("/run/policy2", 0, PTRACE_SYSCALL);
	parameter("traced", "0");
	debugged("/run/policy2", -EACCES, PTRACE_SYSCALL);
}

static void lend_three(void *arg)
{
	struct flexsc_wait wait = { .idle_ns = 1000 };
	struct lent lent[3];
	struct kset set[2];

	(void)arg;
	CHECK_EQ(setuid(4322), 0);
	CHECK_EQ(kset_init(&set[0], 64, 8), 0);
	CHECK_EQ(kset_init(&set[1], 64, 8), 0);
	for (int i = 0; i < 3; i++)
		lend(&lent[i], &set[i % 2], i == 2 ? FLEXSC_WAIT_POLL : 0);
	while (kset_stats(&set[0]).threads != 3)
		sleep_ms(1);
	CHECK_EQ(request(set[0].fd, FLEXSC_IOC_WAIT, ARG(&wait)), -EAGAIN);
	CHECK_EQ(request(set[1].fd, FLEXSC_IOC_WAIT, ARG(&wait)), -EAGAIN);
	for (int i = 0; i < 2; i++)
		request(set[i].fd, FLEXSC_IOC_STOP, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(unlend(&lent[i]), -ESHUTDOWN);
	kset_fini(&set[0]);
	kset_fini(&set[1]);
}

/* Lent threads of one user, over all of the user's sets. */
static void threads_of_a_user(void)
{
	char before[20];

	CHECK_EQ(chmod(FLEXSC_DEVICE, 0666), 0);
	snprintf(before, sizeof(before), "%ld", parameter("user_threads", "3"));
	in_child(lend_three, NULL);
	parameter("user_threads", before);
}

/* Nothing that makes a process or ends one: no limit of them is passed by. */
static void no_processes(void)
{
	static const unsigned nrs[] = { SYS_fork, SYS_vfork,	 SYS_clone,
					435,	  SYS_execve,	 322,
					SYS_exit, SYS_exit_group };
	struct rlimit none = { 0, 0 };
	struct kset set;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
	for (unsigned i = 0; i < sizeof(nrs) / sizeof(*nrs); i++)
		CHECK_EQ(CALL(&set, nrs[i], 0, 0, 0, 0, 0), -EOPNOTSUPP);
	kset_fini(&set);
}

/* A limit that is lowered holds for what was posted before. */
static void limit_at_the_call(void)
{
	struct rlimit few = { 3, 3 };
	struct kset set;
	uint32_t index;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	POST(&set, 0, SYS_dup, 1);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_EQ(kset_next(&set, &index), -EMFILE);
	kset_fini(&set);
}

static void set_up_core(struct kset *set, struct lent *lent)
{
	CHECK_EQ(kset_init(set, 64, 2), 0);
	lend(lent, set, FLEXSC_WAIT_POLL);
	while (!__atomic_load_n(&set->shared->engine_sleeping,
				__ATOMIC_ACQUIRE))
		sleep_ms(1);
}

/* This thread alone becomes another: a kernel core does not act for it. */
static void core_of_another(void)
{
	struct lent lent;
	struct kset set;
	uint32_t index;

	set_up_core(&set, &lent);
	CHECK_EQ(syscall(SYS_setresuid, 1234, 1234, 1234), 0);
	CHECK_EQ(kset_run(&set, 0), 0);
	POST(&set, 1, SYS_chown, ARG("/etc/hostname"), 1, 1);
	request(set.fd, FLEXSC_IOC_KICK, 0);
	CHECK_EQ(unlend(&lent), -EACCES);
	CHECK(kset_next(&set, &index) < 0);
	kset_fini(&set);
}

static int allow_all(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/* As container managers start programs: with a filter. Then not at all. */
static void filtered_container(void)
{
	struct flexsc_wait wait = { .idle_ns = 1000 };
	struct kset set, other;
	int64_t ret;
	uint32_t index;

	CHECK_EQ(unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC |
			 CLONE_NEWNET | CLONE_NEWCGROUP),
		 0);
	CHECK_EQ(kset_init(&set, 64, 1), 0);
	POST(&set, 1, SYS_getpid);
	CHECK_EQ(allow_all(), 0);
	CHECK_EQ(kset_init(&other, 64, 1), -EACCES);
	CHECK_EQ(kset_run(&set, 0), -EACCES);
	CHECK_EQ(request(set.fd, FLEXSC_IOC_WAIT, ARG(&wait)), -EACCES);
	CHECK(!kset_reap(&set, &index, &ret));
	_exit(0);
}

/* A descriptor comes by a posted call as by a plain one. */
static void received_descriptor(void)
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 'x';
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *head = (struct cmsghdr *)control;
	struct kset set;
	uint32_t index;
	int sv[2], pipes[2], fd;

	CHECK_EQ(kset_init(&set, 64, 0), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	CHECK_EQ(pipe(pipes), 0);
	POST(&set, 1, SYS_recvmsg, sv[0], ARG(&message), MSG_CMSG_CLOEXEC);
	CHECK_EQ(kset_run(&set, 0), 0);
	CHECK_EQ(set.shared->nr_armed, 1);
	{
		char own[CMSG_SPACE(sizeof(int))] = "";
		struct msghdr sent = { .msg_iov = &part,
				       .msg_iovlen = 1,
				       .msg_control = own,
				       .msg_controllen = sizeof(own) };
		struct cmsghdr *first = (struct cmsghdr *)own;

		first->cmsg_len = CMSG_LEN(sizeof(int));
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(first), &pipes[1], sizeof(int));
		CHECK_EQ(sendmsg(sv[1], &sent, 0), 1);
	}
	CHECK_EQ(kset_next(&set, &index), 1);
	CHECK_EQ(head->cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(CALL(&set, SYS_write, fd, ARG("y"), 1), 1);
	CHECK_EQ(read(pipes[0], &byte, 1), 1);
	CHECK_EQ(byte, 'y');
	kset_fini(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(attached_debugger),  CASE(tracing_debugger),
		CASE(threads_of_a_user),  CASE(no_processes),
		CASE(limit_at_the_call),  CASE(core_of_another),
		CASE(filtered_container), CASE(received_descriptor),
	};

	return run_cases(cases, sizeof(cases) / sizeof(*cases));
}

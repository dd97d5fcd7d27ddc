/* SPDX-License-Identifier: MIT */
/*
 * A thread that makes calls of many kinds between close(-1) and close(-2), the
 * same under strace and on FlexSC-Threads: tests/check-trace.py compares what is
 * said of them. With an argument, other things: see main().
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wstringop-overflow"

static char *volatile nowhere = (char *)16;

/* From here on both open the same numbers. */
static void fill_descriptors(void)
{
	while (open("/dev/null", O_RDONLY) < 60)
		;
}

static int files(void)
{
	static char text[] = "hello \1\002 3\r\n\"quoted\\\" and a long line\n";
	struct iovec v[2] = { { "one", 3 }, { "two\n", 4 } };
	int fd = open("traced.tmp", O_RDWR | O_CREAT | O_TRUNC, 0640);
	struct flock lock = { .l_type = F_WRLCK, .l_len = 5 };
	char buf[100];
	off_t at = 1;

	write(fd, text, sizeof(text));
	writev(fd, v, 2);
	pread(fd, buf, sizeof(buf), 3);
	lseek(fd, -4, SEEK_END);
	read(fd, buf, sizeof(buf));
	read(fd, buf, sizeof(buf));
	fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_GETFD);
	fcntl(fd, F_SETLK, &lock);
	flock(fd, LOCK_EX | LOCK_NB);
	ftruncate(fd, 20);
	fsync(fd);
	sendfile(open("/dev/null", O_WRONLY), fd, &at, 5);
	dup2(fd, 77);
	close(77);
	write(fd, NULL, 0);
	return close(fd);
}

static void paths(void)
{
	struct stat st;

	open("/nonexistent\n/\"x\xff"
	     "7",
	     O_WRONLY | O_CREAT | O_EXCL, 07);
	open(nowhere, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stat("traced.tmp", &st);
	lstat("nothing", &st);
	mkdir("traced.dir", 0755);
	access("traced.dir", R_OK | X_OK);
	rename("traced.dir", "traced.to");
	rmdir("traced.to");
	symlink("traced.tmp", "traced.link");
	unlink("traced.link");
	chmod("traced.tmp", 0600);
	unlink("traced.tmp");
}

static void messages(void)
{
	struct iovec v[2] = { { "one", 3 }, { "two\n", 4 } };
	struct msghdr out = { .msg_iov = v, .msg_iovlen = 2 };
	char buf[100], copy[100];
	struct iovec w[2] = { { buf, 5 }, { copy, 100 } };
	struct msghdr in = { .msg_iov = w, .msg_iovlen = 2 };
	struct pollfd polled;
	int s[2], nr;

	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s);
	polled = (struct pollfd){ .fd = s[1], .events = POLLIN | POLLPRI };
	poll(&polled, 1, 0);
	send(s[0], "hi", 2, MSG_NOSIGNAL);
	ioctl(s[1], FIONREAD, &nr);
	poll(&polled, 1, 1000);
	recv(s[1], buf, 10, 0);
	sendmsg(s[0], &out, MSG_DONTWAIT);
	recvmsg(s[1], &in, 0);
	recv(s[1], buf, 1, MSG_DONTWAIT);
	send(s[0], nowhere, 1, 0);
	shutdown(s[0], SHUT_WR);
	read(s[1], buf, 1);
	close(s[0]);
	close(s[1]);
}

static void connections(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP), one = 1;
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct sockaddr_un path = { .sun_family = AF_UNIX,
				    .sun_path = "traced.sock" };
	struct sockaddr_storage from;
	socklen_t size = sizeof(to);
	int fd, accepted;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	bind(listener, (struct sockaddr *)&to, sizeof(to));
	listen(listener, 5);
	getsockname(listener, (struct sockaddr *)&to, &size);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	connect(fd, (struct sockaddr *)&to, sizeof(to));
	size = sizeof(from);
	accepted = accept4(listener, (struct sockaddr *)&from, &size,
			   SOCK_CLOEXEC);
	setsockopt(accepted, SOL_TCP, TCP_NODELAY, &one, sizeof(one));
	size = sizeof(one);
	getsockopt(accepted, SOL_SOCKET, SO_TYPE, &one, &size);
	close(accepted);
	close(fd);
	close(listener);
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	connect(fd, (struct sockaddr *)&path, sizeof(path));
	close(fd);
}

static void events(void)
{
	struct timespec time = { 0, 1000000 }, left;
	struct epoll_event event = { .events = EPOLLIN | EPOLLET,
				     .data.fd = 7 };
	int set = epoll_create1(EPOLL_CLOEXEC), fd = eventfd(1, EFD_NONBLOCK);
	uint64_t value;

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	epoll_wait(set, &event, 4, -1);
	read(fd, &value, sizeof(value));
	epoll_wait(set, &event, 4, 0);
	close(set);
	close(fd);
	nanosleep(&time, &left);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void memory(void)
{
	unsigned char present[4];
	char *at = mmap(NULL, 12288, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	mprotect(at, 4096, PROT_READ);
	madvise(at, 8192, MADV_DONTNEED);
	msync(at, 4096, MS_SYNC);
	mincore(at + 1, 4096, present);
	mlock(at, 1);
	munlock(at, 1);
	munlockall();
	at = mremap(at, 12288, 8192, MREMAP_MAYMOVE);
	mmap(at, 4096, PROT_NONE, MAP_SHARED | MAP_FIXED, -1, 0);
	mmap(NULL, 1, PROT_READ, MAP_PRIVATE, 59, 8192);
	munmap(at, 8192);
	munmap(at + 1, 4096);
	brk(NULL);
	close(memfd_create("traced", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	at = shmat(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), NULL,
		   SHM_RDONLY);
	shmdt(at);
	shmctl(-1, IPC_RMID, NULL);
	semget(4711, 1, 0600);
	semctl(-1, 0, IPC_RMID);
	msgget(4711, IPC_EXCL);
	msgctl(-1, IPC_RMID, NULL);
}

static void identity(void)
{
	uid_t u[3];
	gid_t g[3], groups[64];

	getpid();
	getppid();
	gettid();
	getuid();
	geteuid();
	getgid();
	getegid();
	getresuid(&u[0], &u[1], &u[2]);
	getresgid(&g[0], &g[1], &g[2]);
	getgroups(64, groups);
	getgroups(0, NULL);
	getpgrp();
	getpgid(0);
	getsid(0);
	setpgid(-1, 0);
	/* By name they are made in all threads, of which strace sees more. */
	syscall(SYS_setreuid, -1, -1);
	syscall(SYS_setresgid, -1, g[1], -1);
	syscall(SYS_setgroups, 1 << 20, groups);
	setfsuid(u[1]);
	setns(-1, CLONE_NEWNET);
	prctl(PR_SET_NAME, "traced here");
	prctl(PR_GET_NAME, groups);
	prctl(PR_GET_DUMPABLE);
	prctl(PR_SET_PDEATHSIG, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	prctl(77, 1, 2, 3, 4);
}

static void machine(void)
{
	struct rlimit limit = { 1 << 20, RLIM_INFINITY };
	struct itimerval timer = { .it_value.tv_sec = 1000 };
	struct sched_param param;
	struct timespec interval;
	struct utsname name;
	struct rusage usage;
	struct statfs st;
	struct tms tms;
	char path[4096];
	cpu_set_t set;

	uname(&name);
	getrlimit(RLIMIT_STACK, &limit);
	setrlimit(RLIMIT_STACK, &limit);
	prlimit(0, RLIMIT_NOFILE, NULL, &limit);
	getrlimit(77, &limit);
	getrusage(RUSAGE_SELF, &usage);
	times(&tms);
	alarm(0);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	timer.it_value.tv_sec = 0;
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	getitimer(ITIMER_VIRTUAL, &timer);
	sched_getscheduler(0);
	sched_getparam(0, &param);
	sched_setparam(0, &param);
	sched_get_priority_max(SCHED_FIFO);
	sched_rr_get_interval(-1, &interval);
	getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_USER, -1, 3);
	syscall(SYS_sched_getaffinity, 0, sizeof(set), &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setaffinity(0, 0, &set);
	sched_yield();
	getcwd(path, sizeof(path));
	getcwd(path, 1);
	statfs("/proc", &st);
	fstatfs(-1, &st);
	umask(022);
	sethostname(nowhere, 3);
	syscall(SYS_membarrier, 1 << 20, 0);
	syscall(SYS_clock_getres, CLOCK_MONOTONIC, &interval);
}

static void on_signal(int signal);

static void masks(void)
{
	struct sigaction before,
		action = { .sa_handler = SIG_IGN, .sa_flags = SA_NODEFER };
	stack_t stack;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR1);
	sigpending(&set);
	sigwaitinfo(&set, NULL);
	sigtimedwait(&set, NULL, &(struct timespec){ 0, 1000 });
	sigprocmask(SIG_SETMASK, NULL, &set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	sigaction(SIGUSR2, NULL, &action);
	sigaction(SIGKILL, &action, NULL);
	action.sa_handler = on_signal;
	sigaction(SIGUSR2, &action, NULL);
	action.sa_handler = SIG_DFL;
	sigaction(SIGUSR2, &action, &before);
	sigaltstack(NULL, &stack);
	kill(getpid(), 0);
	kill(-77777777, SIGTERM);
}

static void rarer(void)
{
	struct itimerspec in = { .it_value.tv_sec = 1 }, old;
	struct statx stx;
	timer_t timer;
	int fd = open("traced.tmp", O_RDWR | O_CREAT, 0640), two[2];
	char byte;
	struct iovec v = { &byte, 1 };

	fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	sync_file_range(fd, 0, 10, SYNC_FILE_RANGE_WRITE);
	readahead(fd, 0, 10);
	preadv2(fd, &v, 1, 5, RWF_NOWAIT);
	fsetxattr(fd, "user.x", "abc", 3, XATTR_REPLACE);
	getxattr("nothing", "user.x", &byte, 1);
	statx(AT_FDCWD, "traced.tmp", AT_STATX_SYNC_AS_STAT, STATX_SIZE, &stx);
	close_range(1u << 30, ~0u, CLOSE_RANGE_CLOEXEC);
	pipe2(two, O_CLOEXEC);
	splice(fd, NULL, two[1], NULL, 1, SPLICE_F_NONBLOCK);
	close(two[0]);
	close(two[1]);
	close(fd);
	linkat(AT_FDCWD, "traced.tmp", AT_FDCWD, "traced.to", 0);
	renameat2(AT_FDCWD, "traced.tmp", AT_FDCWD, "traced.to",
		  RENAME_EXCHANGE);
	unlink("traced.to");
	unlink("traced.tmp");
	mknod("traced.fifo", S_IFIFO | 0600, 0);
	mkfifo("traced.fifo", 0600);
	unlink("traced.fifo");
	faccessat(AT_FDCWD, "nothing", R_OK, 0);
	fchmodat(AT_FDCWD, "nothing", 0644, 0);
	lchown("nothing", 1, 2);
	mount("a", "nothing", "b", MS_NOSUID | MS_RDONLY, NULL);
	umount2("nothing", MNT_DETACH);
	timer_create(CLOCK_MONOTONIC,
		     &(struct sigevent){ .sigev_notify = SIGEV_NONE }, &timer);
	timer_settime(timer, TIMER_ABSTIME, &in, NULL);
	timer_settime(timer, 0, &in, &old);
	timer_getoverrun(timer);
	timer_delete(timer);
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	timerfd_settime(fd, TFD_TIMER_ABSTIME, &in, NULL);
	close(fd);
	fd = inotify_init1(IN_CLOEXEC);
	inotify_add_watch(fd, "nothing", IN_CREATE | IN_MOVED_TO);
	close(fd);
	getrandom(&byte, 1, GRND_NONBLOCK | GRND_RANDOM);
}

static void *calls(void *arg)
{
	fill_descriptors();
	close(-1);
	memory();
	identity();
	machine();
	masks();
	rarer();
	files();
	paths();
	messages();
	connections();
	events();
	close(-2);
	return arg;
}

static sigjmp_buf out_of_it;

static void on_signal(int signal)
{
	if (signal == SIGSEGV)
		siglongjmp(out_of_it, 1);
}

/* From itself, the kernel and a child; one after the other. */
static void *signals(void *arg)
{
	static const int taken[] = { SIGUSR1, SIGUSR2, SIGALRM,
				     SIGCHLD, SIGSEGV, SIGSEGV };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };
	struct itimerval soon = { .it_value.tv_usec = 1000 };
	sigset_t all, before;
	pid_t child;

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		sigaction(taken[i], &action, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = -7 });
	setitimer(ITIMER_REAL, &soon, NULL);
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sigsuspend(&all);
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	sigsuspend(&all);
	child = fork();
	if (child == 0)
		_exit(3);
	sigfillset(&all);
	sigdelset(&all, SIGCHLD);
	sigsuspend(&all);
	waitpid(child, NULL, 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (sigsetjmp(out_of_it, 1) == 0)
		*nowhere = 1;
	return arg;
}

/* Reads to the end, again and again; then another one is written to. */
static int ends[2];

static void *waits(void *arg)
{
	char byte;

	while (read(ends[0], &byte, 1) == 1)
		;
	return arg;
}

/* Two of them send a byte to and fro, and wait for it each time. */
static int others[2];

static void *plays(void *arg)
{
	bool first = arg;
	char byte = 0;

	if (first)
		write(ends[1], &byte, 1);
	while (read(first ? others[0] : ends[0], &byte, 1) == 1)
		write(first ? ends[1] : others[1], &byte, 1);
	return arg;
}

static void *play(void *arg)
{
	pthread_t thread;

	pipe(others);
	pthread_create(&thread, NULL, plays, NULL);
	plays(&thread);
	return arg;
}

/* For each byte 100 calls, and a line; or, after a 'k', it is killed. */
static void *dies(void *arg)
{
	char byte;

	while (read(ends[0], &byte, 1) == 1) {
		for (int i = 0; i < 100; i++)
			lseek(100, i, SEEK_SET);
		if (byte == 'k')
			kill(getpid(), SIGKILL);
		write(1, "done\n", 5);
	}
	return arg;
}

static void *hurries(void *arg)
{
	int fd = open("/dev/zero", O_RDONLY);
	char buf[512];

	for (;;)
		read(fd, buf, sizeof(buf));
	return arg;
}

static void in_thread(void *(*run)(void *))
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;

	/* What is sent to the process is for that thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setsigmask_np(&attr, &before);
	if (pthread_create(&thread, &attr, run, NULL) == 0)
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Says "ready", and does it when standard input ends. */
static void beside(void *(*run)(void *))
{
	pthread_t thread;
	char byte;

	pipe(ends);
	pthread_create(&thread, NULL, run, NULL);
	write(1, "ready\n", 6);
	while (read(0, &byte, 1) == 1)
		write(ends[1], &byte, 1);
	close(ends[1]);
	if (run == waits)
		pthread_join(thread, NULL);
}

/* One by SIGKILL, of which wait(2) is told, one otherwise, by waitid(2). */
static void kills(void)
{
	siginfo_t info;
	pid_t child = fork();
	int status;

	if (child == 0)
		raise(SIGKILL);
	waitpid(child, &status, 0);
	child = fork();
	if (child == 0) {
		signal(SIGUSR1, SIG_DFL);
		raise(SIGUSR1);
	}
	waitid(P_PID, (id_t)child, &info, WEXITED);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!*what)
		in_thread(calls);
	else if (strcmp(what, "waits") == 0)
		beside(waits);
	else if (strcmp(what, "dies") == 0)
		beside(dies);
	else if (strcmp(what, "hurries") == 0)
		beside(hurries);
	else if (strcmp(what, "plays") == 0)
		beside(play);
	else if (strcmp(what, "signal") == 0)
		raise(SIGTERM);
	else if (strcmp(what, "signals") == 0)
		in_thread(signals);
	else if (strcmp(what, "kills") == 0)
		kills();
	else if (strcmp(what, "fork") == 0) {
		if (fork() == 0) {
			in_thread(calls);
			_exit(4);
		}
		wait(NULL);
	}
	return argc > 2 ? atoi(argv[2]) : 0;
}

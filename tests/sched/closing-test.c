/* SPDX-License-Identifier: MIT */
/*
 * Closing descriptors that tasks wait on: as with threads of the kernel, a
 * call that waits keeps its file and never acts on the next one that has the
 * number. By whoever closes, and whichever queue waits.
 */
#include "threads.h"

#include "engine/hold.h"
#include "sched/carrier.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READERS 6
#define ROUNDS 40

static int old_pipe[2], new_pipe[2];
static unsigned parked, done, round_nr, over;

static unsigned load(unsigned *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static void add(unsigned *p)
{
	__atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST);
}

/* Carriers have files of their own, and come and go. */
static unsigned open_pipes(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(dir))) {
		char to[64] = { 0 };

		n += readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1) >
			     0 &&
		     !strncmp(to, "pipe:", 5);
	}
	closedir(dir);
	return n;
}

static int64_t read_one(struct fx_task *me, int fd, char *c)
{
	struct flexsc_entry call = { .nr = SYS_read, .nr_args = 3 };

	call.args[0] = (uint64_t)fd;
	call.args[1] = (uintptr_t)c;
	call.args[2] = 1;
	return fx_call(me, &call, "read", NULL, 0, NULL);
}

static bool is_kmod(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");

	return engine && (!strcmp(engine, "kmod") || !strcmp(engine, "kcore"));
}

/* All that it holds: this test is alone with it. */
static uint64_t held_by_module(void)
{
	int device = fx_sched.queue[0]->owner.set.owner_eventfd;
	struct flexsc_stats stats = { 0 };

	EXPECT(ioctl(device, FLEXSC_IOC_STATS, &stats) == 0);
	return stats.calls;
}

/*
 * Have so many nothing more to do than to wait? That their tasks are parked
 * would not do: a core thread may not have taken their calls yet.
 * @entered: of which the kernel has the file already, beside those
 */
static bool are_held(unsigned nr, unsigned entered)
{
	uint64_t word;

	if (is_kmod())
		return held_by_module() == nr + entered;
	word = fx_load_acquire(fx_hold_word(old_pipe[0]));
	return (word & FX_HOLD_COUNT) == nr;
}

static void await_held(unsigned nr, unsigned entered)
{
	while (!are_held(nr, entered))
		usleep(100);
}

/* In the other rounds each of them may be before or behind the close. */
static bool awaited(unsigned i)
{
	return i % 3;
}

static void reader(struct thread *t)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		char c = 0;
		int64_t ret;

		while (load(&round_nr) <= i)
			sleep_ns(t, 50000);
		add(&parked);
		ret = read_one(&t->task, old_pipe[0], &c);
		EXPECT((ret == 1 && c == 'o') || (!awaited(i) && ret < 0));
		add(&done);
	}
}

/* Of the same number, unless the engine has just taken it for itself. */
static void reopen(void)
{
	EXPECT(pipe(new_pipe) == 0);
	if (new_pipe[0] != old_pipe[0]) {
		int fd = fcntl(new_pipe[0], F_DUPFD, old_pipe[0]);

		EXPECT(fd >= 0);
		close(new_pipe[0]);
		new_pipe[0] = fd;
	}
}

enum how {
	BY_CLOSE,
	BY_DUP2,
	BY_RANGE,
	BY_BRACKETS
};

static void take_away(struct fx_task *me, enum how how, int other)
{
	struct flexsc_entry call = { .nr = SYS_close, .nr_args = 1 };

	call.args[0] = (uint64_t)old_pipe[0];
	switch (how) {
	case BY_DUP2:
		call.nr = SYS_dup2;
		call.nr_args = 2;
		call.args[0] = (uint64_t)other;
		call.args[1] = (uint64_t)old_pipe[0];
		break;
	case BY_RANGE:
		call.nr = SYS_close_range;
		call.nr_args = 3;
		call.args[1] = (uint64_t)old_pipe[0];
		break;
	case BY_BRACKETS:
		EXPECT(fx_closing_begin(me, old_pipe[0]));
		EXPECT(close(old_pipe[0]) == 0);
		fx_closing_end(old_pipe[0]);
		return;
	default:
		break;
	}
	EXPECT(fx_call(me, &call, "close", NULL, 0, NULL) >= 0);
}

/* One round, by the thread that closes. */
static void one_round(struct fx_task *me, unsigned i)
{
	enum how how = (enum how)(i % 4);
	char n[READERS], o[READERS];
	int spare = -1;

	memset(n, 'n', sizeof(n));
	memset(o, 'o', sizeof(o));
	EXPECT(pipe(old_pipe) == 0);
	if (how == BY_DUP2)
		EXPECT(pipe(new_pipe) == 0);
	__atomic_store_n(&round_nr, i + 1, __ATOMIC_SEQ_CST);
	while (load(&parked) != READERS * (i + 1))
		call3(me, SYS_getpid, 0, 0, 0);
	if (awaited(i))
		await_held(READERS, 0);
	if (how == BY_DUP2)
		spare = new_pipe[0];
	take_away(me, how, spare);
	if (how == BY_DUP2) {
		close(spare);
		new_pipe[0] = old_pipe[0];
	} else {
		reopen();
	}
	if (!awaited(i))
		return;
	EXPECT(write(new_pipe[1], n, READERS) == READERS);
	usleep(2000);
	EXPECT(load(&done) == READERS * i);
	EXPECT(write(old_pipe[1], o, READERS) == READERS);
	while (load(&done) != READERS * (i + 1))
		call3(me, SYS_getpid, 0, 0, 0);
	/* Nobody took what was not for them. */
	EXPECT(read(new_pipe[0], n, READERS) == READERS);
}

static void rounds(struct fx_task *me)
{
	unsigned before = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		one_round(me, i);
		if (!awaited(i)) {
			char o[READERS];

			memset(o, 'o', sizeof(o));
			EXPECT(write(new_pipe[1], o, READERS) == READERS);
			EXPECT(write(old_pipe[1], o, READERS) == READERS ||
			       errno == EPIPE);
			while (load(&done) != READERS * (i + 1))
				call3(me, SYS_getpid, 0, 0, 0);
		}
		close(old_pipe[1]);
		close(new_pipe[1]);
		close(new_pipe[0]);
		usleep(1000);
		if (!before)
			before = open_pipes();
		EXPECT(open_pipes() == before);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
}

static void closer(struct thread *t)
{
	if (t->number) {
		reader(t);
		return;
	}
	rounds(&t->task);
}

static void by_task(uint32_t carriers)
{
	scheduler(carriers);
	threads_run(READERS + 1, closer, NULL);
	EXPECT(done == READERS * ROUNDS);
}

static void one_queue(void)
{
	by_task(1);
}

static void two_queues(void)
{
	by_task(2);
}

/* The main thread, which is a task that was never lent. */
static void at_home(void)
{
	static struct fx_task me;
	struct thread *threads;

	scheduler(2);
	fx_task_attach(&me, NULL);
	threads = threads_start(READERS, reader, NULL);
	rounds(&me);
	threads_join(threads, READERS);
	fx_task_detach(&me);
}

/* Calls in queue for a syscall thread, and with one. */
static void sleeper(struct thread *t)
{
	struct flexsc_entry call = { .nr = SYS_flock, .nr_args = 2 };

	call.args[0] = (uint64_t)old_pipe[0];
	call.args[1] = 2; /* LOCK_EX */
	add(&parked);
	EXPECT(fx_call(&t->task, &call, "flock", NULL, 0, NULL) == 0);
	EXPECT(load(&over) == 1);
	call.args[0] = (uint64_t)new_pipe[0];
	call.args[1] = 8; /* LOCK_UN */
	EXPECT(fx_call(&t->task, &call, "flock", NULL, 0, NULL) == 0);
	add(&done);
}

static int temporary(void)
{
	char name[] = "/tmp/flexsc-closing-XXXXXX";
	int fd = mkstemp(name);

	unlink(name);
	return fd;
}

/* How many wait for a lock of this file, in the kernel. */
static unsigned nr_blocked(int fd)
{
	FILE *locks = fopen("/proc/locks", "r");
	char line[256], inode[32];
	struct stat st;
	unsigned n = 0;

	EXPECT(fstat(fd, &st) == 0);
	snprintf(inode, sizeof(inode), ":%lu ", (unsigned long)st.st_ino);
	while (fgets(line, sizeof(line), locks))
		n += strstr(line, "->") && strstr(line, inode);
	fclose(locks);
	return n;
}

/* More of them than threads. The first descriptor names another file soon. */
static void queued(void)
{
	struct fx_sched_options options = {
		.engine = getenv("FLEXSC_ENGINE"),
		.nr_carriers = 1,
		.max_threads = 2,
	};
	struct thread *threads;
	char path[64];
	int holder;

	if (options.engine && !strcmp(options.engine, "sync"))
		return; /* it would wait for ever in flock */
	old_pipe[0] = temporary();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", old_pipe[0]);
	holder = open(path, O_RDWR);
	EXPECT(syscall(SYS_flock, holder, 2) == 0);
	EXPECT(fx_sched_init(&options) == 0);
	threads = threads_start(READERS, sleeper, NULL);
	await_held(READERS - 2, 2);
	while (nr_blocked(holder) != 2)
		usleep(100);
	new_pipe[0] = dup(old_pipe[0]); /* the same description: one lock */
	take_away(NULL, BY_CLOSE, 0);
	EXPECT(open("/dev/null", O_RDWR) == old_pipe[0]);
	usleep(5000);
	EXPECT(load(&done) == 0);
	add(&over);
	EXPECT(syscall(SYS_flock, holder, 8) == 0);
	threads_join(threads, READERS);
	EXPECT(done == READERS);
}

/* Is it closed? LOOKING: it is about to be, if both wait. */
enum { NOT_YET, LOOKING, CLOSES };
static unsigned stage;

/* Again, if time was over before the other one waited, too. */
static void times_out(struct thread *t, struct flexsc_entry *call)
{
	do {
		struct fx_deadline soon = in_ns(
			FX_CLOCK_MONOTONIC, 300 * slowness() * FX_NS_PER_MS);
		enum fx_reason why;

		EXPECT(fx_call(&t->task, call, "read", &soon, 0, &why) ==
		       -ECANCELED);
		EXPECT(why == FX_WOKEN_TIMEOUT);
		call->ret = 0;
		while (load(&stage) == LOOKING)
			sleep_ns(t, 50000);
	} while (load(&stage) == NOT_YET);
}

/* A deadline, and an end of the file, after the close. */
static void timed(struct thread *t)
{
	struct flexsc_entry call = { .nr = SYS_read, .nr_args = 3 };
	char c;

	call.args[0] = (uint64_t)old_pipe[0];
	call.args[1] = (uintptr_t)&c;
	call.args[2] = 1;
	if (t->number == 0) {
		times_out(t, &call);
		add(&done);
	} else {
		EXPECT(fx_call(&t->task, &call, "read", NULL, 0, NULL) == 0);
	}
}

static void set_stage(unsigned now)
{
	__atomic_store_n(&stage, now, __ATOMIC_SEQ_CST);
}

static void ends(void)
{
	struct fx_carrier_counters carriers;
	struct thread *threads;
	unsigned before;

	EXPECT(pipe(old_pipe) == 0);
	scheduler(2);
	before = open_pipes();
	threads = threads_start(2, timed, NULL);
	for (set_stage(LOOKING); !are_held(2, 0); set_stage(LOOKING)) {
		set_stage(NOT_YET);
		usleep(1000);
	}
	set_stage(CLOSES);
	fx_sched_carriers(&carriers);
	EXPECT(carriers.closes_moved == 0);
	take_away(NULL, BY_CLOSE, 0);
	fx_sched_carriers(&carriers);
	EXPECT(carriers.closes_moved == 1 || is_kmod());
	while (!load(&done))
		usleep(1000);
	/* One less, and ours. */
	EXPECT(open_pipes() == before || is_kmod());
	close(old_pipe[1]);
	threads_join(threads, 2);
	EXPECT(open_pipes() < before);
}

static void refused(struct thread *t)
{
	char c;

	EXPECT(read_one(&t->task, old_pipe[0], &c) == -EBADF);
}

/* No descriptor is left to keep the file by. */
static void no_descriptor(void)
{
	struct rlimit limit = { 0, 0 };
	struct thread *threads;

	if (is_kmod())
		return; /* it needs none, so the calls wait on */
	EXPECT(pipe(old_pipe) == 0);
	scheduler(2);
	threads = threads_start(2, refused, NULL);
	await_held(2, 0);
	EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	take_away(NULL, BY_CLOSE, 0);
	threads_join(threads, 2);
}

/* A long write goes on behind the close, on its own file. */
#define LONG (1 << 20)

static void writer(struct thread *t)
{
	struct flexsc_entry call = { .nr = SYS_write, .nr_args = 3 };
	char *data = calloc(1, LONG);

	call.args[0] = (uint64_t)old_pipe[0];
	call.args[1] = (uintptr_t)data;
	call.args[2] = LONG;
	EXPECT(fx_call(&t->task, &call, "write", NULL, 0, NULL) == LONG);
	free(data);
	add(&done);
}

static void long_write(void)
{
	char *buf = malloc(LONG);
	struct thread *threads;
	size_t got = 0;

	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, old_pipe) == 0);
	scheduler(2);
	threads = threads_start(1, writer, NULL);
	await_held(1, 0);
	take_away(NULL, BY_CLOSE, 0);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, new_pipe) == 0);
	EXPECT(new_pipe[0] == old_pipe[0]);
	while (got < LONG) {
		ssize_t n = read(old_pipe[1], buf, LONG);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	EXPECT(got == LONG);
	threads_join(threads, 1);
	EXPECT(recv(new_pipe[1], buf, LONG, MSG_DONTWAIT) == -1);
	/* Over: the last descriptor of the socket is gone. */
	EXPECT(read(old_pipe[1], buf, 1) == 0);
	free(buf);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "one_queue", one_queue },
		{ "two_queues", two_queues },
		{ "at_home", at_home },
		{ "queued", queued },
		{ "ends", ends },
		{ "no_descriptor", no_descriptor },
		{ "long_write", long_write },
	};

	(void)argc;
	signal(SIGPIPE, SIG_IGN);
	return tests_run(tests, FX_ARRAY_SIZE(tests), argv);
}

/* SPDX-License-Identifier: MIT */
/*
 * Threads of the C library run by carriers: who they are, parking and waking,
 * timers, stealing, hand-off, home.
 */
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *shared[16];
static unsigned count;

#define add(n) __atomic_add_fetch(&count, (n), __ATOMIC_SEQ_CST)
#define now_count() __atomic_load_n(&count, __ATOMIC_SEQ_CST)

/* Busy for a while without giving way. */
static void burn(uint64_t ns)
{
	uint64_t end = fx_now_ns() + ns;

	while (fx_now_ns() < end)
		;
}

static pthread_key_t key;
static __thread unsigned mine;

static void who(struct thread *t)
{
	struct fx_queue *before = t->task.queue;

	mine = t->number;
	pthread_setspecific(key, t);
	for (int i = 0; i < 2000; i++) {
		errno = (int)t->number;
		if (i % 16 == 0)
			burn(2000);
		fx_yield(&t->task);
		EXPECT(pthread_equal(pthread_self(), t->pthread) || i == 0);
		EXPECT(errno == (int)t->number);
		EXPECT(mine == t->number);
		EXPECT(pthread_getspecific(key) == t);
		EXPECT(fx_task_current() == &t->task);
		if (t->task.queue != before) {
			before = t->task.queue;
			add(1);
		}
	}
}

static void identity(void)
{
	uint64_t end = fx_now_ns() + 20 * FX_NS_PER_SEC;

	pthread_key_create(&key, NULL);
	/* Where one carrier gets no processor for long, the other does it all. */
	do {
		scheduler(2);
		threads_run(50, who, NULL);
	} while (!now_count() && fx_now_ns() < end);
	printf("# %u migrations\n", count);
	EXPECT(count > 0);
}

/* Pairs that go in turn. */
#ifdef __SANITIZE_THREAD__
#define PAIRS 500 /* tsan has a limit of 8128 threads */
#else
#define PAIRS 5000
#endif
static struct pair {
	unsigned turn;
	fx_ticket ticket[2];
	struct thread *side[2];
} * pairs;

/* Park until it is @me's turn; a ticket that is spent may be left over. */
static void await_turn(struct thread *t, struct pair *pair, unsigned me)
{
	while (__atomic_load_n(&pair->turn, __ATOMIC_SEQ_CST) != me) {
		__atomic_store_n(&pair->ticket[me], fx_task_arm(&t->task),
				 __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&pair->turn, __ATOMIC_SEQ_CST) == me)
			fx_task_disarm(&t->task);
		else
			EXPECT(fx_park(&t->task, "turn", NULL, 0) ==
			       FX_WOKEN_VALUE);
	}
}

static void bat(struct thread *t)
{
	struct pair *pair = &pairs[t->number / 2];
	unsigned me = t->number % 2, rounds = (unsigned)(uintptr_t)t->arg;

	for (unsigned i = 0; i < rounds; i++) {
		fx_ticket ticket;

		await_turn(t, pair, me);
		__atomic_store_n(&pair->turn, !me, __ATOMIC_SEQ_CST);
		ticket = __atomic_exchange_n(&pair->ticket[!me], 0,
					     __ATOMIC_SEQ_CST);
		if (ticket)
			fx_wake(&pair->side[!me]->task, ticket, FX_WOKEN_VALUE);
	}
}

static unsigned started;

static void wait_for_all(struct thread *t, unsigned nr)
{
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < nr)
		sleep_ns(t, FX_NS_PER_MS);
}

static void paired(struct thread *t)
{
	pairs[t->number / 2].side[t->number % 2] = t;
	wait_for_all(t, 2 * PAIRS);
	bat(t);
}

static void many_pairs(void)
{
	pairs = calloc(PAIRS, sizeof(*pairs));
	scheduler(2);
	threads_run(2 * PAIRS, paired, (void *)50);
	free(pairs);
}

static unsigned order[16], nr_order;
static struct fx_deadline from[2]; /* by clock */
static bool told;

static void sleeper(struct thread *t)
{
	struct fx_deadline until;

	/* However slowly they are made: nobody comes after its time. */
	wait_for_all(t, 16);
	if (t->number == 0) {
		from[0] = in_ns(FX_CLOCK_MONOTONIC, 50 * FX_NS_PER_MS);
		from[1] = in_ns(FX_CLOCK_REALTIME, 50 * FX_NS_PER_MS);
		__atomic_store_n(&told, true, __ATOMIC_RELEASE);
	}
	while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE))
		sleep_ns(t, FX_NS_PER_MS);
	until = from[t->number % 2];
	until.at_ns += (16 - t->number) * 5 * FX_NS_PER_MS;
	EXPECT(fx_sleep(&t->task, &until, 0) == FX_WOKEN_TIMEOUT);
	EXPECT(in_ns(until.clock, 0).at_ns >= until.at_ns);
	order[__atomic_fetch_add(&nr_order, 1, __ATOMIC_SEQ_CST)] = t->number;
}

static void timers(void)
{
	unsigned wrong = 0;

	scheduler(1);
	threads_run(16, sleeper, NULL);
	EXPECT(nr_order == 16);
	/* Two clocks, read one after the other: in the order of each. */
	for (unsigned i = 1; i < 16; i++)
		for (unsigned j = 0; j < i; j++)
			wrong += order[i] % 2 == order[j] % 2 &&
				 order[i] > order[j];
	EXPECT(wrong == 0);
}

/* Timed parks that are woken first leave nothing behind that matters. */
static void early(struct thread *t)
{
	for (int i = 0; i < 3000; i++) {
		struct fx_deadline far =
			in_ns(FX_CLOCK_MONOTONIC, 100 * FX_NS_PER_SEC);
		fx_ticket ticket = fx_task_arm(&t->task);

		if (i % 3) {
			EXPECT(fx_wake(&t->task, ticket, FX_WOKEN_VALUE));
			EXPECT(!fx_wake(&t->task, ticket, FX_WOKEN_VALUE));
		} else {
			far = in_ns(FX_CLOCK_MONOTONIC, i % 2 * 50000);
		}
		EXPECT(fx_park(&t->task, "early", &far, 0) ==
		       (i % 3 ? FX_WOKEN_VALUE : FX_WOKEN_TIMEOUT));
		EXPECT(!fx_wake(&t->task, ticket, FX_WOKEN_VALUE));
		if (i % 16 == 0)
			fx_yield(&t->task);
	}
}

static void early_wakes(void)
{
	scheduler(2);
	threads_run(20, early, NULL);
}

/* Only those stay that began where the first one did. */
static void burner(struct thread *t)
{
	void *none = NULL;
	struct fx_queue *queue = t->task.queue;

	if (!__atomic_compare_exchange_n(&shared[0], &none, queue, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
	    none != queue)
		return;
	for (int i = 0; i < 100; i++) {
		burn(200 * FX_NS_PER_US);
		fx_yield(&t->task);
	}
}

static void stealing(void)
{
	struct thread *threads;

	scheduler(2);
	threads = threads_start(8, burner, NULL);
	for (int i = 0; i < 200 && COUNTED(steals) == 0; i++)
		usleep(1000);
	printf("# %lu steals\n", (unsigned long)COUNTED(steals));
	EXPECT(COUNTED(steals) > 0);
	threads_join(threads, 8);
}

/* On one carrier: one that never gives way, and one that counts. */
static uint32_t released;

static void hog_or_counter(struct thread *t)
{
	int kind = (int)(uintptr_t)t->arg;

	if (t->number == 0) {
		wait_for_all(t, 2);
		if (kind == 0) {
			while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
				fx_cpu_relax();
		} else {
			struct timespec ts = { 0, 200 * 1000 * 1000 };

			syscall(SYS_nanosleep, &ts, NULL);
			__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
		}
		fx_yield(&t->task);
		EXPECT(pthread_equal(pthread_self(), t->pthread));
		return;
	}
	wait_for_all(t, 2);
	for (int i = 0; i < 50; i++) {
		sleep_ns(t, 100000);
		if (kind && __atomic_load_n(&released, __ATOMIC_ACQUIRE))
			break;
		add(1);
	}
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
}

static void stuck(int kind)
{
	struct thread *threads;

	scheduler(1);
	threads = threads_start(2, hog_or_counter, (void *)(uintptr_t)kind);
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		usleep(1000);
	printf("# %lu hand-offs, counted to %u\n",
	       (unsigned long)COUNTED(handoffs), now_count());
	EXPECT(COUNTED(handoffs) >= 1);
	EXPECT(now_count() >= 20);
	threads_join(threads, 2);
}

static void spinner(void)
{
	stuck(0);
}

static void blocked(void)
{
	stuck(1);
}

/* A carrier that waits for its processor is not stuck. */
static void *rival(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		fx_cpu_relax();
	return NULL;
}

static void starved(struct thread *t)
{
	struct sched_param none = { 0 };
	uint64_t end = fx_now_ns() + FX_NS_PER_SEC;

	while (fx_now_ns() < end) {
		/* The carrier's: next to nothing beside the rival. */
		EXPECT(syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &none) ==
		       0);
		if (t->number)
			sleep_ns(t, FX_NS_PER_MS);
		burn(50 * FX_NS_PER_US);
		fx_yield(&t->task);
	}
}

static void preempted(void)
{
	struct thread *threads;
	pthread_attr_t attr;
	pthread_t other;
	cpu_set_t one, all;
	int cpu = 0;

	scheduler(1);
	pthread_attr_init(&attr);
	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_SET(cpu, &one);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	pthread_create(&other, &attr, rival, NULL);
	threads = threads_start(3, starved, NULL);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i].pthread, NULL);
	printf("# %lu hand-offs\n", (unsigned long)COUNTED(handoffs));
	EXPECT(COUNTED(handoffs) <= 3);
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
	pthread_join(other, NULL);
}

static unsigned nr_carriers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned nr = 0;

	while ((entry = readdir(dir))) {
		char path[300], name[16] = { 0 };
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd >= 0 && read(fd, name, sizeof(name) - 1) > 0)
			nr += !strncmp(name, "flexsc-carrier", 14);
		close(fd);
	}
	closedir(dir);
	return nr;
}

static void nap(struct thread *t)
{
	struct timespec ts = { 0, 200 * 1000 * 1000 };

	(void)t;
	syscall(SYS_nanosleep, &ts, NULL);
	add(1);
}

/* Spare carriers are made when they are needed, and end when they are not. */
static void spares(void)
{
	struct fx_carrier_counters carriers;
	uint64_t end;
	unsigned most;
	struct thread *threads;

	scheduler(1);
	threads = threads_start(8, nap, NULL);
	while (now_count() < 8)
		usleep(1000);
	most = nr_carriers();
	EXPECT(most > 3);
	end = fx_now_ns() + 20 * FX_NS_PER_SEC;
	while (nr_carriers() > 2 && fx_now_ns() < end)
		usleep(50000);
	EXPECT(nr_carriers() == 2);
	fx_sched_carriers(&carriers);
	EXPECT(carriers.carriers == 2 && carriers.spares == 1);
	EXPECT(carriers.made >= most);
	EXPECT(carriers.ended == carriers.made - 2);
	threads_join(threads, 8);
	/* And once more, with memory that was used. */
	count = 0;
	scheduler(1);
	threads_run(8, nap, NULL);
}

/* Hogs that come and go: bundles move all the time. */
static void churning(struct thread *t)
{
	for (int i = 0; i < 30; i++) {
		struct timespec ts = { 0, 2 * 1000 * 1000 };

		switch ((t->number + (unsigned)i) % 4) {
		case 0:
			syscall(SYS_nanosleep, &ts, NULL);
			break;
		case 1:
			burn(1500 * FX_NS_PER_US);
			break;
		case 2:
			sleep_ns(t, 300 * FX_NS_PER_US);
			break;
		default:
			fx_yield(&t->task);
		}
		EXPECT(pthread_equal(pthread_self(), t->pthread));
		add(1);
	}
}

static void hand_offs(void)
{
	scheduler(2);
	threads_run(40, churning, NULL);
	EXPECT(count == 40 * 30);
}

static void commuter(struct thread *t)
{
	pid_t own = 0;

	for (int i = 0; i < 200; i++) {
		fx_go_home(&t->task);
		EXPECT(fx_task_at_home(&t->task));
		if (!own)
			own = (pid_t)syscall(SYS_gettid);
		EXPECT(own == (pid_t)syscall(SYS_gettid));
		EXPECT(pthread_equal(pthread_self(), t->pthread));
		if (i % 4 == 0)
			sleep_ns(t, 10000);
		fx_task_lend(&t->task);
		EXPECT(!fx_task_at_home(&t->task));
		EXPECT(own != (pid_t)syscall(SYS_gettid));
		fx_yield(&t->task);
	}
}

static void home(void)
{
	scheduler(2);
	threads_run(20, commuter, NULL);
}

/* Parked, then sent home, then woken there. */
static void sent(struct thread *t)
{
	fx_ticket ticket = fx_task_arm(&t->task);

	__atomic_store_n(&shared[t->number], (void *)ticket, __ATOMIC_RELEASE);
	EXPECT(fx_park(&t->task, "sent", NULL, 0) == FX_WOKEN_VALUE);
	EXPECT(!t->arg || fx_task_at_home(&t->task) == t->number % 2);
	add(1);
}

static void send_home(void)
{
	struct thread *threads;

	scheduler(2);
	threads = threads_start(16, sent, shared);
	for (unsigned i = 0; i < 16; i++) {
		fx_ticket ticket;

		while (!(ticket = (fx_ticket)__atomic_load_n(&shared[i],
							     __ATOMIC_ACQUIRE)))
			usleep(100);
		while (i % 2 && !fx_send_home(&threads[i].task))
			usleep(100);
		EXPECT(fx_wake(&threads[i].task, ticket, FX_WOKEN_VALUE));
	}
	threads_join(threads, 16);
	EXPECT(count == 16);
}

/* One of the two is never lent. */
static void *at_home(void *arg)
{
	struct thread *t = arg;

	fx_task_attach(&t->task, NULL);
	bat(t);
	fx_task_detach(&t->task);
	return NULL;
}

static void lent_side(struct thread *t)
{
	pairs[0].side[0] = t;
	while (!__atomic_load_n(&pairs[0].side[1], __ATOMIC_ACQUIRE))
		sleep_ns(t, FX_NS_PER_MS);
	bat(t);
}

static void foreign(void)
{
	struct thread *threads, *native = aligned_alloc(64, sizeof(*native));
	static struct pair pair;

	*native = (struct thread){ .number = 1, .arg = (void *)5000 };
	pairs = &pair;
	scheduler(2);
	threads = threads_start(1, lent_side, (void *)5000);
	__atomic_store_n(&pair.side[1], native, __ATOMIC_RELEASE);
	pthread_create(&native->pthread, NULL, at_home, native);
	pthread_join(native->pthread, NULL);
	threads_join(threads, 1);
	free(native);
}

/* fx_interrupt(): before the park, during it, and when it does not listen. */
static void interrupted(struct thread *t)
{
	struct fx_task *me = &t->task;
	struct fx_deadline soon = in_ns(FX_CLOCK_MONOTONIC, 20 * FX_NS_PER_MS);

	fx_interrupt(me, FX_PENDING_SIGNAL);
	fx_task_arm(me);
	EXPECT(fx_park(me, "", &soon, FX_PENDING_CANCEL) == FX_WOKEN_TIMEOUT);
	fx_task_arm(me);
	EXPECT(fx_park(me, "", NULL, FX_PENDING_SIGNAL) == FX_WOKEN_SIGNAL);
	EXPECT(fx_task_asked(me, FX_PENDING_SIGNAL) == FX_PENDING_SIGNAL);
	EXPECT(fx_task_asked(me, FX_PENDING_SIGNAL) == 0);
	for (int i = 0; i < 200; i++) {
		fx_task_arm(me);
		__atomic_store_n(&shared[0], me, __ATOMIC_RELEASE);
		EXPECT(fx_park(me, "", NULL, FX_PENDING_CANCEL) ==
		       FX_WOKEN_CANCEL);
		EXPECT(fx_task_asked(me, FX_PENDING_CANCEL));
	}
	__atomic_store_n(&shared[1], me, __ATOMIC_RELEASE);
}

static void interrupts(void)
{
	struct thread *threads;

	scheduler(2);
	threads = threads_start(1, interrupted, NULL);
	while (!__atomic_load_n(&shared[1], __ATOMIC_ACQUIRE)) {
		if (__atomic_exchange_n(&shared[0], NULL, __ATOMIC_ACQ_REL))
			fx_interrupt(&threads[0].task, FX_PENDING_CANCEL);
		usleep(50);
	}
	threads_join(threads, 1);
}

/* A handler wakes, whatever it has interrupted on a carrier. */
static struct fx_task *posted_to;
static fx_ticket posted_ticket;

static void on_alarm(int signal)
{
	fx_ticket ticket =
		__atomic_exchange_n(&posted_ticket, 0, __ATOMIC_SEQ_CST);

	if (ticket)
		fx_wake(posted_to, ticket, FX_WOKEN_VALUE);
}

static void handler_waiter(struct thread *t)
{
	if (t->number) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE)) {
			/* Carriers block signals: now and then one may come. */
			pthread_sigmask(SIG_UNBLOCK, &set, NULL);
			fx_yield(&t->task);
		}
		return;
	}
	posted_to = &t->task;
	for (int i = 0; i < 300; i++) {
		fx_ticket ticket = fx_task_arm(&t->task);

		__atomic_store_n(&posted_ticket, ticket, __ATOMIC_SEQ_CST);
		EXPECT(fx_park(&t->task, "handler", NULL, 0) == FX_WOKEN_VALUE);
	}
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
}

static void wakes_by_handler(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct thread *threads;

	sigaction(SIGUSR1, &action, NULL);
	scheduler(2);
	threads = threads_start(5, handler_waiter, NULL);
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE)) {
		kill(getpid(), SIGUSR1);
		usleep(20);
	}
	threads_join(threads, 5);
}

/* A child goes on with what forked alone, and may start anew. */
static void again(struct thread *t)
{
	for (int i = 0; i < 10; i++)
		sleep_ns(t, 100000);
	add(1);
}

__attribute__((unused)) static void forker(struct thread *t)
{
	int status = 1;
	pid_t pid;

	sleep_ns(t, 100000);
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		/* The mask is the carrier's: it would keep the alarm out. */
		sigemptyset(&none);
		pthread_sigmask(SIG_SETMASK, &none, NULL);
		alarm(30);
		fx_sched_after_fork();
		EXPECT(fx_task_at_home(&t->task));
		EXPECT(pthread_equal(pthread_self(), t->pthread));
		sleep_ns(t, 100000);
		scheduler(2);
		count = 0;
		threads_run(10, again, NULL);
		EXPECT(count == 10);
		_exit(nr_failed_expectations != 0);
	}
	EXPECT(call3(&t->task, SYS_wait4, (uint64_t)pid, (uintptr_t)&status,
		     0) == pid);
	EXPECT(status == 0);
	sleep_ns(t, 100000);
}

__attribute__((unused)) static void forks(void)
{
	scheduler(2);
	threads_run(4, forker, NULL);
}

/* TSan has a thread of its own that wakes up now and then. */
#ifdef __SANITIZE_THREAD__
#define IDLE_MS 20
#else
#define IDLE_MS 2
#endif

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Nothing to do costs nothing, once all that began is over. */
static void idle(void)
{
	struct thread *threads;
	uint64_t used;

	scheduler(2);
	threads = threads_start(4, sent, NULL);
	for (unsigned seconds = 0; seconds < 10; seconds++) {
		used = cpu_ns();
		usleep(1000000);
		used = cpu_ns() - used;
		printf("# %lu us in an idle second\n",
		       (unsigned long)used / 1000);
		/* In the first one they park. */
		if (seconds && used < IDLE_MS * FX_NS_PER_MS)
			break;
	}
	EXPECT(used < IDLE_MS * slowness() * FX_NS_PER_MS);
	for (unsigned i = 0; i < 4; i++) {
		struct fx_task_look look;

		fx_task_look(&threads[i].task, &look);
		EXPECT(look.state == FX_TASK_PARKED && !look.at_home);
		EXPECT(look.where && *look.where);
		EXPECT(fx_now_ms_coarse() - look.since_ms >= 1000);
	}
	for (unsigned i = 0; i < 4; i++)
		EXPECT(fx_wake(&threads[i].task,
			       (fx_ticket)__atomic_load_n(&shared[i],
							  __ATOMIC_ACQUIRE),
			       FX_WOKEN_VALUE));
	threads_join(threads, 4);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "identity", identity },
		{ "many_pairs", many_pairs },
		{ "timers", timers },
		{ "early_wakes", early_wakes },
		{ "stealing", stealing },
		{ "spinner", spinner },
		{ "blocked", blocked },
		{ "hand_offs", hand_offs },
		{ "preempted", preempted },
		{ "spares", spares },
		{ "home", home },
		{ "send_home", send_home },
		{ "foreign", foreign },
		{ "interrupts", interrupts },
		{ "wakes_by_handler", wakes_by_handler },
/*
 * The child makes threads and uses memory, which libasan and libtsan of gcc 12
 * stand in no program: a program of the C library alone with 8 threads fails,
 * too. tsan ends each child: its list still has the parent's threads, whose
 * stacks, and so names, the new ones get ("dup thread with used id"). In one
 * child in ten asan's allocator is locked by a thread that is not there.
 */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
		{ "forks", forks },
#endif
		{ "idle", idle },
	};

	(void)argc;
	return tests_run(tests, FX_ARRAY_SIZE(tests), argv);
}

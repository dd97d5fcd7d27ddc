/* SPDX-License-Identifier: MIT */
/*
 * Threads with an alternate signal stack: faults and signals while they run,
 * wait and compute; full stacks; what handlers see, change and leave.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

#define SIZE (64 * 1024)

typedef void handler(int signal, siginfo_t *info, void *context);

static __thread sigjmp_buf back;
static __thread stack_t mine; /* what was set */
static __thread char *begin; /* of the thread, on its stack */
static volatile int *volatile nowhere;
static volatile int sink;
static int pipe_fd[2];

static const char *place(const void *p)
{
	const char *at = p, *low = mine.ss_sp;

	if (low && at >= low && at < low + SIZE)
		return "alternate";
	return at < begin && at > begin - (8 << 20) ? "usual" : "strange";
}

static void tell(const char *what, const stack_t *s)
{
	printf("%s: %s%s%s%s\n", what,
	       s->ss_flags & SS_DISABLE ? "none" :
	       s->ss_sp == mine.ss_sp	? "mine" :
					  "another",
	       s->ss_size == mine.ss_size && mine.ss_size ? ", its size" : "",
	       s->ss_flags & SS_ONSTACK ? ", on it" : "",
	       s->ss_flags & (int)SS_AUTODISARM ? ", disarming" : "");
}

static void now_is(const char *what)
{
	stack_t s;

	sigaltstack(NULL, &s);
	tell(what, &s);
}

/* After this it is on a carrier, if there are any; sigsetjmp() goes home. */
static void wait_a_little(void)
{
	usleep(1);
}

static void set(unsigned flags)
{
	mine = (stack_t){ .ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			  .ss_size = SIZE,
			  .ss_flags = (int)flags };
	sigaltstack(&mine, NULL);
}

static void unset(void)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	sigaltstack(&none, NULL);
	munmap(mine.ss_sp, SIZE);
	mine = none;
}

static void handle(int signal, handler *h, int flags)
{
	struct sigaction action = { .sa_sigaction = h,
				    .sa_flags = SA_SIGINFO | flags };

	sigaction(signal, &action, NULL);
}

static void see(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	stack_t other = { .ss_sp = mine.ss_sp, .ss_size = SIZE / 2 };
	int bad;

	printf("signal %d, code %d, on the %s stack, siginfo on the %s\n",
	       signal, info->si_code, place(&uc), place(info));
	tell("uc_stack", &uc->uc_stack);
	now_is("in the handler");
	if (!mine.ss_sp)
		return;
	bad = sigaltstack(&other, NULL);
	printf("changed: %s\n", bad ? strerror(errno) : "yes");
	if (!bad)
		sigaltstack(&mine, NULL);
}

static void see_and_jump(int signal, siginfo_t *info, void *context)
{
	see(signal, info, context);
	siglongjmp(back, 1);
}

static void jump(int signal, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	siglongjmp(back, signal);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static __attribute__((noinline)) int deeper(int n)
{
	volatile char room[512];

	room[n % 512] = (char)n;
	return deeper(n + 1) + room[(n + 1) % 512];
}

static void overflow(void)
{
	volatile int times = 0;

	handle(SIGSEGV, see_and_jump, SA_ONSTACK);
	while (times < 3) {
		times++;
		if (sigsetjmp(back, 1) == 0) {
			wait_a_little();
			sink = deeper(1);
		}
	}
	printf("%d times\n", times);
}

/* Three bytes long; the registers around it must be as they were. */
static double computes_and_faults(volatile int *where)
{
	double a = 1.5, b = 2.25, c;
	long kept = 77;

	__asm__ volatile("movsd %[a], %%xmm5\n\t"
			 "movsd %[b], %%xmm13\n\t"
			 "mov %[kept], %%r12\n\t"
			 "movl (%[where]), %%r10d\n\t"
			 "addsd %%xmm13, %%xmm5\n\t"
			 "movsd %%xmm5, %[c]\n\t"
			 "mov %%r12, %[kept]"
			 : [c] "=m"(c), [kept] "+r"(kept)
			 : [a] "m"(a), [b] "m"(b), [where] "r"(where)
			 : "xmm5", "xmm13", "r12", "r10", "memory");
	return c + (double)kept;
}

static void step_over(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	double three = 3;

	(void)signal;
	printf("at %p on the %s stack, xmm13 %s\n", info->si_addr, place(&uc),
	       ((double *)&uc->uc_mcontext.fpregs->_xmm[13])[0] == 2.25 ?
		       "right" :
		       "wrong");
	((double *)&uc->uc_mcontext.fpregs->_xmm[13])[0] = three;
	uc->uc_mcontext.gregs[REG_RIP] += 3;
}

static void changed_context(void)
{
	handle(SIGSEGV, step_over, SA_ONSTACK);
	for (int i = 0; i < 3; i++) {
		wait_a_little();
		printf("%.2f\n", computes_and_faults(nowhere));
	}
}

static void wait_inside(int signal, siginfo_t *info, void *context)
{
	char c = 0;
	ssize_t n;

	n = read(pipe_fd[0], &c, 1);
	printf("read %zd on the %s stack\n", n, place(&c));
	usleep(1000);
	raise(SIGUSR1);
	step_over(signal, info, context);
}

static void *feed(void *arg)
{
	usleep(10000);
	write(pipe_fd[1], "x", 1);
	return arg;
}

static void handler_waits(void)
{
	pthread_t feeder;

	handle(SIGSEGV, wait_inside, SA_ONSTACK);
	handle(SIGUSR1, see, SA_ONSTACK);
	pthread_create(&feeder, NULL, feed, NULL);
	wait_a_little();
	printf("%.2f\n", computes_and_faults(nowhere));
	pthread_join(feeder, NULL);
	wait_a_little();
	now_is("afterwards");
}

static volatile int computing, stop;

static void stops(int signal, siginfo_t *info, void *context)
{
	see(signal, info, context);
	stop = 1;
}

static void *sends(void *arg)
{
	while (!computing)
		usleep(100);
	usleep(10000);
	pthread_kill(*(pthread_t *)arg, SIGUSR2);
	return NULL;
}

static void from_outside(void)
{
	pthread_t self = pthread_self(), sender;
	struct timespec t = { 50, 0 };
	int bad;

	handle(SIGUSR2, stops, SA_ONSTACK);
	wait_a_little();
	stop = 0;
	computing = 1;
	pthread_create(&sender, NULL, sends, &self);
	while (!stop)
		sink++;
	pthread_join(sender, NULL);
	pthread_create(&sender, NULL, sends, &self);
	bad = nanosleep(&t, NULL);
	printf("nanosleep: %s\n", bad ? strerror(errno) : "slept");
	pthread_join(sender, NULL);
	computing = 0;
}

static void *page_without_file(void)
{
	FILE *f = tmpfile();

	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f),
		    0);
}

static void kinds(void)
{
	volatile char *page = page_without_file();
	volatile int zero = 0, some = 5;

	handle(SIGFPE, see_and_jump, SA_ONSTACK);
	if (sigsetjmp(back, 1) == 0) {
		wait_a_little();
		sink = some / zero;
	}
	handle(SIGBUS, see_and_jump, SA_ONSTACK);
	if (sigsetjmp(back, 1) == 0) {
		wait_a_little();
		*page = 1;
	}
	handle(SIGILL, see_and_jump, SA_ONSTACK);
	if (sigsetjmp(back, 1) == 0) {
		wait_a_little();
		__asm__ volatile("ud2");
	}
	handle(SIGTRAP, see, SA_ONSTACK);
	wait_a_little();
	__asm__ volatile("int3");
	/* Sent by somebody, whatever its name. */
	handle(SIGFPE, see, SA_ONSTACK);
	wait_a_little();
	raise(SIGFPE);
}

static void errors(void)
{
	stack_t s = { .ss_sp = mine.ss_sp, .ss_size = 100 };

	wait_a_little();
	printf("too small: %s\n", sigaltstack(&s, NULL) ? strerror(errno) : "");
	s.ss_size = SIZE;
	s.ss_flags = 0x40;
	wait_a_little();
	printf("flags: %s\n", sigaltstack(&s, NULL) ? strerror(errno) : "");
	wait_a_little();
	now_is("then");
	wait_a_little();
	syscall(SYS_sigaltstack, NULL, &s);
	tell("by number", &s);
	unset();
	wait_a_little();
	now_is("unset");
	set(0);
	wait_a_little();
	unset();
	now_is("unset from afar");
	set(0);
}

static void *with(unsigned flags, void (*act)(void))
{
	begin = (char *)__builtin_frame_address(0);
	set(flags);
	wait_a_little();
	now_is("begins");
	act();
	wait_a_little();
	now_is("ends");
	unset();
	return NULL;
}

static void *without(void (*act)(void))
{
	begin = (char *)__builtin_frame_address(0);
	wait_a_little();
	now_is("begins");
	act();
	return NULL;
}

static void fault_once(void)
{
	if (sigsetjmp(back, 1) == 0) {
		wait_a_little();
		*nowhere = 1;
	}
}

static void usual_handler(void)
{
	handle(SIGSEGV, see_and_jump, 0);
	fault_once();
}

static void asked_handler(void)
{
	handle(SIGSEGV, see_and_jump, SA_ONSTACK);
	fault_once();
	fault_once();
}

static void step_over_quietly(int signal, siginfo_t *info, void *context)
{
	see(signal, info, context);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3;
}

static void disarms(void)
{
	handle(SIGSEGV, step_over_quietly, SA_ONSTACK);
	wait_a_little();
	printf("%.2f\n", computes_and_faults(nowhere));
}

static void full_with_default(void)
{
	signal(SIGSEGV, SIG_DFL);
	wait_a_little();
	sink = deeper(1);
}

static void full_without_stack(void)
{
	handle(SIGSEGV, see, SA_ONSTACK);
	wait_a_little();
	sink = deeper(1);
}

static void full_for_other(void)
{
	handle(SIGSEGV, see, 0);
	wait_a_little();
	sink = deeper(1);
}

static void blocked(void)
{
	sigset_t set;

	handle(SIGSEGV, jump, SA_ONSTACK);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fault_once();
	_exit(3);
}

static void once_only(void)
{
	handle(SIGSEGV, step_over_quietly, SA_ONSTACK | (int)SA_RESETHAND);
	wait_a_little();
	printf("%.2f\n", computes_and_faults(nowhere));
	fflush(stdout);
	wait_a_little();
	printf("%.2f\n", computes_and_faults(nowhere));
}

/* Prints, resets and goes on, as Rust does with a fault that is none of its. */
static void reset(int number, siginfo_t *info, void *context)
{
	see(number, info, context);
	fflush(stdout);
	signal(number, SIG_DFL);
}

static void resets(void)
{
	handle(SIGSEGV, reset, SA_ONSTACK);
	wait_a_little();
	*nowhere = 1;
}

static void aborts_inside(int number, siginfo_t *info, void *context)
{
	see(number, info, context);
	fflush(stdout);
	abort();
}

static void full_and_aborts(void)
{
	handle(SIGSEGV, aborts_inside, SA_ONSTACK);
	wait_a_little();
	sink = deeper(1);
}

struct job {
	const char *name;
	bool alternate;
	unsigned flags;
	void (*act)(void);
};

static void *do_job(void *arg)
{
	const struct job *job = arg;

	return job->alternate ? with(job->flags, job->act) : without(job->act);
}

static void run(const struct job *job)
{
	pthread_t thread;

	printf("-- %s\n", job->name);
	pthread_create(&thread, NULL, do_job, (void *)job);
	pthread_join(thread, NULL);
	fflush(stdout);
}

static void run_in_child(const struct job *job)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		run(job);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("%s: exit %d, signal %d\n", job->name,
	       WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

#define CROWD 12
#define FAULTS 100

static void *crowd(void *arg)
{
	volatile long faults = 0;
	volatile double sum = 0;

	begin = (char *)__builtin_frame_address(0);
	set(0);
	for (volatile int i = 0; i < FAULTS; i++) {
		volatile double before = i * 0.5;

		if (sigsetjmp(back, 1) == SIGSEGV) {
			faults++;
		} else {
			wait_a_little();
			if (i % 2)
				sink = deeper(1);
			else
				*nowhere = i;
		}
		sum += before;
	}
	unset();
	return (void *)(faults == FAULTS && sum == FAULTS * (FAULTS - 1) / 4.0 ?
				0L :
				1L);
}

static void many(void)
{
	pthread_t thread[CROWD];
	void *result;
	long bad = 0;

	handle(SIGSEGV, jump, SA_ONSTACK);
	for (int i = 0; i < CROWD; i++)
		pthread_create(&thread[i], NULL, crowd, NULL);
	for (int i = 0; i < CROWD; i++) {
		pthread_join(thread[i], &result);
		bad += (long)result;
	}
	printf("crowd: %ld wrong\n", bad);
}

static void *looks(void *arg)
{
	stack_t s;

	sigaltstack(NULL, &s);
	*(int *)arg += !(s.ss_flags & SS_DISABLE);
	set(0);
	wait_a_little();
	/* Every third leaves it behind. */
	if (rand() % 3)
		unset();
	return NULL;
}

static void churn(void)
{
	pthread_t thread;
	int left = 0;

	for (int i = 0; i < 200; i++) {
		pthread_create(&thread, NULL, looks, &left);
		pthread_join(thread, NULL);
	}
	printf("churn: %d began with one\n", left);
}

static volatile int arrived;

static void arrives(int signal, siginfo_t *info, void *context)
{
	(void)context;
	(void)signal;
	arrived += info->si_code <= 0;
}

static void *spins(void *arg)
{
	wait_a_little();
	while (arrived < 20)
		sink++;
	return arg;
}

/* Not faults, although they have the names: for any thread. */
static void to_the_process(void)
{
	pthread_t thread[3];
	sigset_t set;

	handle(SIGSEGV, arrives, SA_ONSTACK);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, spins, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 20; i++) {
		int before = arrived;

		kill(getpid(), SIGSEGV);
		while (arrived == before)
			usleep(100);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	printf("to the process: %d\n", arrived);
}

static const struct job jobs[] = {
	{ "overflow", true, 0, overflow },
	{ "changed context", true, 0, changed_context },
	{ "handler waits", true, 0, handler_waits },
	{ "from outside", true, 0, from_outside },
	{ "kinds", true, 0, kinds },
	{ "errors", true, 0, errors },
	{ "usual handler", true, 0, usual_handler },
	{ "asked for, none there", false, 0, asked_handler },
	{ "disarms", true, SS_AUTODISARM, disarms },
};

static const struct job deaths[] = {
	{ "full, no handler", false, 0, full_with_default },
	{ "full, no handler, with a stack", true, 0, full_with_default },
	{ "full, no stack", false, 0, full_without_stack },
	{ "full, usual handler", true, 0, full_for_other },
	{ "full, aborts", true, 0, full_and_aborts },
	{ "blocked", true, 0, blocked },
	{ "once only", true, 0, once_only },
	{ "resets", true, 0, resets },
};

int main(void)
{
	pipe(pipe_fd);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		run(&jobs[i]);
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		run_in_child(&deaths[i]);
	many();
	churn();
	to_the_process();
	return 0;
}

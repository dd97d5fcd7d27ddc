/* SPDX-License-Identifier: MIT */
/*
 * The watching half of the fuzzer: starts processes that do harm, kills, stops
 * and traces them at any moment, tries to unload the module meanwhile, and
 * looks at the end whether the module has forgotten them all. What the kernel
 * has to say is in its log, which tools/vm-run reads.
 *
 *   kmod-fuzz SEED KILLS ENTRIES SECONDS   at least so many; at most so long
 */
#include "cases.h"
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	AT_ONCE = 3
};

struct victim {
	pid_t pid;
	bool witness;
	uint64_t until;
};

static struct victim victims[AT_ONCE];
static unsigned nr_started, nr_killed, nr_witnesses, nr_refusals;
static int device;

static struct flexsc_stats stats(void)
{
	struct flexsc_stats now;

	CHECK_EQ(request(device, FLEXSC_IOC_STATS, ARG(&now)), 0);
	return now;
}

static void start(struct dice *dice, struct victim *victim, uint64_t seed)
{
	uint64_t own = seed << 20 | nr_started++;

	victim->witness = nr_started % 16 == 0;
	victim->pid = fork();
	if (!victim->pid) {
		if (victim->witness)
			fuzz_witness(own);
		fuzz_child(own);
	}
	CHECK(victim->pid > 0);
	/* Most die young: in the middle of registering or starting threads. */
	victim->until = now_ns() + (victim->witness    ? 60000000000ull :
				    roll(dice, 4) == 0 ? roll(dice, 200000000) :
							 roll(dice, 20000000));
}

/* Stops it as a debugger would; it may be gone, or not allowed. */
static void trace(struct dice *dice, pid_t pid)
{
	int status;

	if (ptrace(roll(dice, 2) ? PTRACE_SEIZE : PTRACE_ATTACH, pid, 0, 0))
		return;
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	for (unsigned i = 0; i < 1 + roll(dice, 6); i++) {
		if (waitpid(pid, &status, __WALL | WNOHANG) != pid)
			sleep_ms(1);
		ptrace(roll(dice, 2) ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0, 0);
	}
	if (roll(dice, 2))
		ptrace(PTRACE_DETACH, pid, 0, 0);
}

static void end(struct dice *dice, struct victim *victim)
{
	int status;
	pid_t ended;

	switch (victim->witness ? 9 : roll(dice, 6)) {
	case 0:
		kill(victim->pid, SIGSTOP);
		sleep_ms(roll(dice, 3));
		kill(victim->pid, SIGCONT);
		break;
	case 1:
		trace(dice, victim->pid);
		break;
	case 2:
		kill(victim->pid, SIGSEGV);
		break;
	}
	if (kill(victim->pid, SIGKILL) == 0)
		nr_killed++;
	do
		ended = waitpid(victim->pid, &status, __WALL);
	while (ended == victim->pid && WIFSTOPPED(status));
	if (victim->witness)
		fail(__FILE__, __LINE__, "a well-behaved process hangs");
	victim->pid = 0;
}

/* True if its time is not over. A witness must end well by itself. */
static bool lives(struct victim *victim)
{
	int status;

	if (!victim->pid)
		return false;
	if (waitpid(victim->pid, &status, WNOHANG) != victim->pid)
		return true;
	victim->pid = 0;
	if (victim->witness && status)
		fail(__FILE__, __LINE__,
		     "a well-behaved process ended with status 0x%x",
		     (unsigned)status);
	nr_witnesses += victim->witness;
	nr_killed += !victim->witness;
	return false;
}

/* It must not go while it is in use, and we are using it. */
static void unload(void)
{
	if (!syscall(SYS_delete_module, "flexsc", O_NONBLOCK))
		fail(__FILE__, __LINE__, "unloaded while in use");
	nr_refusals++;
}

static void round_of(struct dice *dice, uint64_t seed)
{
	for (unsigned i = 0; i < AT_ONCE; i++) {
		if (!victims[i].pid)
			start(dice, &victims[i], seed);
		else if (lives(&victims[i]) && now_ns() > victims[i].until)
			end(dice, &victims[i]);
	}
	if (roll(dice, 64) == 0)
		unload();
	sleep_ms(1);
}

/* All are dead: what they had is given back, if not at once. */
static void forgotten(void)
{
	struct flexsc_stats now = stats();

	for (unsigned i = 0; i < 1000; i++) {
		now = stats();
		if (!now.sets && !now.calls && !now.threads && !now.pages)
			return;
		sleep_ms(10);
	}
	fail(__FILE__, __LINE__,
	     "left behind: %llu sets, %llu calls, %llu threads, %llu pages",
	     (unsigned long long)now.sets, (unsigned long long)now.calls,
	     (unsigned long long)now.threads, (unsigned long long)now.pages);
}

static void own_folder(void)
{
	mkdir("/run/fuzz", 0777);
	CHECK_EQ(mount("fuzz", "/run/fuzz", "tmpfs", 0,
		       "size=64m,nr_inodes=4000,mode=1777"),
		 0);
	CHECK_EQ(chdir("/run/fuzz"), 0);
}

int main(int argc, char **argv)
{
	uint64_t seed, until;
	unsigned kills, entries;
	struct dice dice;

	if (argc != 5)
		return 2;
	seed = strtoull(argv[1], NULL, 0);
	kills = (unsigned)atoi(argv[2]);
	entries = (unsigned)atoi(argv[3]);
	until = now_ns() + (uint64_t)atoi(argv[4]) * 1000000000;
	if (access(FLEXSC_DEVICE, F_OK)) {
		printf("SKIP: no %s\n", FLEXSC_DEVICE);
		return 77;
	}
	device = open(FLEXSC_DEVICE, O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	CHECK_EQ(chmod(FLEXSC_DEVICE, 0666), 0);
	own_folder();
	dice_init(&dice, seed);
	while ((nr_killed < kills || stats().all.entries < entries) &&
	       now_ns() < until)
		round_of(&dice, seed);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		if (victims[i].pid && !victims[i].witness)
			end(&dice, &victims[i]);
		while (lives(&victims[i]))
			sleep_ms(5);
	}
	forgotten();
	printf("seed %llu: %u processes, %u killed, %u well-behaved beside them, "
	       "%llu entries, %llu completed, %u times not unloaded\n",
	       (unsigned long long)seed, nr_started, nr_killed, nr_witnesses,
	       (unsigned long long)stats().all.entries,
	       (unsigned long long)stats().all.completed, nr_refusals);
	return nr_killed < kills || stats().all.entries < entries;
}

/* SPDX-License-Identifier: MIT */
/* The threads of a kernel core and where they are; see engine/kcore.h. */
#include "engine/kcore.h"

#include "arch/arch.h"
#include "base/futex.h"
#include "base/thread.h"
#include "engine/core.h"

#include <linux/flexsc.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How often a thread that is to end is told so. */
#define TELL_NS FX_NS_PER_MS

/* Of all sets of the process: is there a kernel core on this processor? */
static uint32_t claimed[CPU_SETSIZE];

static long request(int fd, unsigned long what, const void *argument)
{
	return fx_arch_syscall(SYS_ioctl, fd, (long)what, (long)argument, 0, 0,
			       0);
}

/* Processors ---------------------------------------------------------------- */

/* "2,4-7"; what is no number ends it. */
static void parse_list(const char *text, cpu_set_t *set)
{
	char *end;

	CPU_ZERO(set);
	for (; *text >= '0' && *text <= '9'; text = *end ? end + 1 : end) {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET((int)first, set);
	}
}

static bool list(cpu_set_t *set)
{
	const char *wanted = secure_getenv("FLEXSC_KERNEL_CORES");
	cpu_set_t listed;

	if (!fx_core_processors(set))
		return false;
	if (wanted && *wanted) {
		parse_list(wanted, &listed);
		CPU_AND(set, set, &listed);
	}
	return CPU_COUNT(set) > 0;
}

bool fx_kcore_possible(void)
{
	cpu_set_t set;

	return list(&set);
}

/* The next one on the list behind @before that none is on. -1: there is none. */
static int claim(int before)
{
	cpu_set_t set;

	if (!list(&set))
		return -1;
	for (int i = 1; i <= CPU_SETSIZE; i++) {
		int cpu = (before + i) % CPU_SETSIZE;
		uint32_t none = 0;

		if (CPU_ISSET(cpu, &set) && fx_cas(&claimed[cpu], &none, 1u))
			return cpu;
	}
	return -1;
}

static void unclaim(struct fx_kcore *core)
{
	if (core->cpu >= 0)
		fx_store_release(&claimed[core->cpu], 0u);
	core->cpu = -1;
}

bool fx_kcore_move(struct fx_kcore *core)
{
	int cpu, saved = errno;
	bool moved = true;
	cpu_set_t one;

	if (!list(&one) || core->moves++ >= (unsigned)CPU_COUNT(&one))
		return false;
	cpu = claim(core->cpu);
	if (cpu < 0)
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	for (unsigned i = 0; i < core->nr_threads; i++)
		moved &= !sched_setaffinity(
			fx_load_relaxed(&core->threads[i].tid), sizeof(one),
			&one);
	errno = saved;
	unclaim(core);
	core->cpu = cpu;
	return moved;
}

/* Threads ------------------------------------------------------------------- */

static void *serve(void *arg)
{
	struct fx_kcore_thread *t = arg;
	struct fx_kcore *core = t->core;
	struct flexsc_wait want = { .flags = FLEXSC_WAIT_POLL,
				    .spin_ns = core->spin_ns };
	long bad;

	pthread_setname_np(pthread_self(), "flexsc-core");
	fx_store_relaxed(&t->tid, (pid_t)syscall(SYS_gettid));
	do {
		bad = request(core->fd, FLEXSC_IOC_WAIT, &want);
	} while (bad == -EINTR && !fx_load_acquire(&core->stop));
	fx_fetch_add(&core->nr_over, 1u);
	fx_store_release(&t->over, 1u);
	fx_futex_wake(&t->over, 1);
	return NULL;
}

static bool add_thread(struct fx_kcore *core)
{
	struct fx_kcore_thread *t = &core->threads[core->nr_threads];
	pthread_attr_t attr;
	sigset_t before;
	cpu_set_t one;
	int bad;

	*t = (struct fx_kcore_thread){ .core = core };
	CPU_ZERO(&one);
	CPU_SET(core->cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	fx_pool_mask(&before);
	bad = pthread_create(&t->thread, &attr, serve, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	core->nr_threads += !bad;
	return !bad;
}

/* One that is on its way into the kernel does not hear of it: again, then. */
static void end_threads(struct fx_kcore *core)
{
	fx_store_release(&core->stop, 1u);
	for (unsigned i = 0; i < core->nr_threads; i++) {
		struct fx_kcore_thread *t = &core->threads[i];

		while (!fx_load_acquire(&t->over)) {
			request(core->fd, FLEXSC_IOC_KICK, (void *)1);
			fx_futex_wait(&t->over, 0, TELL_NS);
		}
		pthread_join(t->thread, NULL);
	}
	core->nr_threads = 0;
}

int fx_kcore_start(struct fx_kcore *core, int fd, uint64_t spin_ns)
{
	*core = (struct fx_kcore){ .fd = fd,
				   .spin_ns = spin_ns,
				   .cpu = claim(-1) };
	if (core->cpu < 0)
		return -EAGAIN;
	while (core->nr_threads < FX_KCORE_THREADS)
		if (!add_thread(core)) {
			end_threads(core);
			unclaim(core);
			return -EAGAIN;
		}
	core->on = true;
	return 0;
}

void fx_kcore_stop(struct fx_kcore *core)
{
	if (!core->on)
		return;
	core->on = false;
	end_threads(core);
	unclaim(core);
}

void fx_kcore_abandon(struct fx_kcore *core)
{
	if (core->on)
		unclaim(core);
	core->on = false;
}

uint64_t fx_kcore_cpu_ns(const struct fx_kcore *core)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < core->nr_threads; i++)
		ns += fx_thread_cpu_ns(fx_load_relaxed(&core->threads[i].tid));
	return ns;
}

uint64_t fx_kcore_delay_ns(const struct fx_kcore *core)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < core->nr_threads; i++)
		ns += fx_thread_delay_ns(
			fx_load_relaxed(&core->threads[i].tid));
	return ns;
}

/* SPDX-License-Identifier: MIT */
/*
 * Registrations of flexsc.ko that stay on a socket's wait queue between calls
 * (kmod/stay.h) under every schedule: a runner that waits, what makes the
 * socket ready, a close(2) that nobody tells the module of, and who takes
 * unclaimed registrations away. No wake-up is lost, and nobody touches memory
 * that was freed: of the queue, which goes with the socket, or of a registration.
 * Each with the mistakes that it must not survive. Prints TAP.
 *
 * The kernel's own parts (wait queues, RCU, the end of a socket) are stand-ins
 * at the beginning; kmod/stay.c and arm.c cannot be compiled here, so what
 * they do is written once more below, function by function.
 */
#include "model/explore.h"

#include "base/types.h"

#include <string.h>

enum {
	RIGHT,
	POLLS_FIRST, /* before it has claimed */
	NO_SECOND_LOOK, /* it waits though it was woken meanwhile */
	NO_FENCE, /* between hanging up and the poll */
	UNASKED, /* off the queue without a look if there is one */
	OUTSIDE_RCU, /* that look is in no section */
	FREED_AT_ONCE, /* without waiting for sections */
	TAKES_CLAIMED, /* who takes them away does not look at the claim */
	NO_HOLD, /* a call that waits does not hold the file */
};
static unsigned int mistake;

#define NR_STAYS 2
#define WRITES 2

/* The first stay is that of the runner's set, the second another set's. */
static struct {
	uint32_t inside[FX_MODEL_MAX_THREADS]; /* odd: in an RCU section */
	uint32_t data, files, sk_wq, queue, queue_lock;
	uint32_t on_queue[NR_STAYS], alive[NR_STAYS];
	uint32_t ctx_lock, place, claimed, armed, woken, made_ready;
} mem;

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	mem.files = mem.sk_wq = mem.queue = 1;
	fx_model_region(&mem, sizeof(mem));
}

static void setup_both(void)
{
	setup();
	mem.alive[0] = mem.on_queue[0] = mem.place = 1;
	mem.alive[1] = mem.on_queue[1] = 1;
}

static void lock(uint32_t *p)
{
	while (fx_exchange(p, 1u))
		fx_cpu_relax();
}

static void unlock(uint32_t *p)
{
	fx_store_release(p, 0u);
}

/* The kernel's ------------------------------------------------------------- */

static void rcu_lock(void)
{
	fx_fetch_add(&mem.inside[fx_model_self()], 1u);
}

static void rcu_unlock(void)
{
	fx_fetch_add(&mem.inside[fx_model_self()], 1u);
}

/* Until the sections of now are over. */
static void synchronize(void)
{
	for (int i = 0; i < FX_MODEL_MAX_THREADS; i++) {
		uint32_t now = fx_load_acquire(&mem.inside[i]);

		while (now & 1 && fx_load_acquire(&mem.inside[i]) == now)
			fx_cpu_relax();
	}
}

static void look_at_queue(void)
{
	fx_model_assert(fx_load_acquire(&mem.queue));
}

/* add_wait_queue(), remove_wait_queue(): neighbours are written to. */
static void hang(unsigned stay, uint32_t on)
{
	look_at_queue();
	lock(&mem.queue_lock);
	for (unsigned i = 0; i < NR_STAYS; i++)
		if (fx_load_relaxed(&mem.on_queue[i]))
			fx_model_assert(fx_load_relaxed(&mem.alive[i]));
	fx_store_relaxed(&mem.on_queue[stay], on);
	unlock(&mem.queue_lock);
}

static void on_wake(unsigned stay);

/* The sleeper's side of wq_has_sleeper() is in begin(). */
static void write_once(void)
{
	rcu_lock();
	fx_fetch_add(&mem.data, 1u); /* a full barrier, too */
	if (fx_load_acquire(&mem.sk_wq)) {
		look_at_queue();
		if (fx_load_relaxed(&mem.on_queue[0]) ||
		    fx_load_relaxed(&mem.on_queue[1])) {
			lock(&mem.queue_lock);
			for (unsigned i = 0; i < NR_STAYS; i++)
				if (fx_load_relaxed(&mem.on_queue[i]))
					on_wake(i);
			unlock(&mem.queue_lock);
		}
	}
	rcu_unlock();
}

/* fput(): the last one ends the socket, and frees what the queue is in. */
static void put_file(void)
{
	if (fx_fetch_add(&mem.files, -1u) != 1)
		return;
	fx_exchange(&mem.sk_wq, 0u);
	synchronize();
	fx_store_release(&mem.queue, 0u);
}

/* The module's ------------------------------------------------------------- */

static void on_wake(unsigned stay)
{
	fx_model_assert(fx_load_relaxed(&mem.alive[stay]));
	if (stay)
		return; /* nobody waits there */
	lock(&mem.ctx_lock);
	if (fx_load_relaxed(&mem.claimed)) {
		if (fx_load_relaxed(&mem.armed)) {
			fx_store_relaxed(&mem.armed, 0u);
			fx_store_relaxed(&mem.claimed, 0u);
			fx_store_relaxed(&mem.made_ready, 1u);
		} else {
			fx_store_relaxed(&mem.woken, 1u);
		}
	}
	unlock(&mem.ctx_lock);
}

static void free_stay(unsigned stay)
{
	uint32_t there;

	if (mistake != OUTSIDE_RCU)
		rcu_lock();
	there = mistake == UNASKED || fx_load_acquire(&mem.sk_wq);
	if (there)
		hang(stay, 0);
	if (mistake != OUTSIDE_RCU)
		rcu_unlock();
	if (mistake != FREED_AT_ONCE)
		synchronize();
	fx_store_release(&mem.alive[stay], 0u);
}

/* fxk_stay_drop() and its like, of the runner's set. */
static void take_away(void)
{
	uint32_t mine;

	lock(&mem.ctx_lock);
	mine = fx_load_relaxed(&mem.place) &&
	       (mistake == TAKES_CLAIMED || !fx_load_relaxed(&mem.claimed));
	if (mine)
		fx_store_relaxed(&mem.place, 0u);
	unlock(&mem.ctx_lock);
	if (mine)
		free_stay(0);
}

static void take_other_away(void)
{
	free_stay(1);
}

/* settle(), add_wait_queue(). One that is not freed yet has no other's memory. */
static void begin(void)
{
	while (fx_load_acquire(&mem.alive[0]))
		fx_cpu_relax();
	fx_store_relaxed(&mem.alive[0], 1u);
	lock(&mem.ctx_lock);
	fx_store_relaxed(&mem.place, 1u);
	fx_store_relaxed(&mem.claimed, 1u);
	unlock(&mem.ctx_lock);
	hang(0, 1);
	if (mistake != NO_FENCE)
		fx_fence();
}

static void claim(void)
{
	uint32_t found;

	lock(&mem.ctx_lock);
	fx_store_relaxed(&mem.woken, 0u);
	found = fx_load_relaxed(&mem.place);
	if (found)
		fx_store_relaxed(&mem.claimed, 1u);
	unlock(&mem.ctx_lock);
	if (!found)
		begin();
}

static bool is_ready(uint32_t seen)
{
	return fx_load_acquire(&mem.data) != seen;
}

/* fxk_arm(). Return: it waits. The caller holds the file. */
static bool arm(uint32_t seen)
{
	bool ready = false;

	if (mistake == POLLS_FIRST)
		ready = is_ready(seen);
	claim();
	if (mistake != POLLS_FIRST)
		ready = is_ready(seen);
	lock(&mem.ctx_lock);
	ready = ready ||
		(mistake != NO_SECOND_LOOK && fx_load_relaxed(&mem.woken));
	fx_store_relaxed(ready ? &mem.claimed : &mem.armed, !ready);
	unlock(&mem.ctx_lock);
	return !ready;
}

/* Until it has read all that is written; its last look-up holds the file. */
static void runner(void)
{
	uint32_t seen = 0;

	while (seen != WRITES) {
		fx_fetch_add(&mem.files, 1u);
		if (mistake == NO_HOLD)
			put_file();
		if (arm(seen)) {
			while (!fx_load_acquire(&mem.made_ready))
				fx_cpu_relax();
			fx_store_relaxed(&mem.made_ready, 0u);
		}
		seen = fx_load_acquire(&mem.data);
		if (mistake != NO_HOLD)
			put_file();
	}
}

/* The descriptor is closed while one call waits, or before, or behind it. */
static void runner_once(void)
{
	if (fx_load_acquire(&mem.files) == 0)
		return;
	if (arm(0)) {
		while (!fx_load_acquire(&mem.made_ready))
			fx_cpu_relax();
	}
	if (mistake != NO_HOLD)
		put_file();
}

static void writer(void)
{
	for (int i = 0; i < WRITES; i++)
		write_once();
}

static void setup_held(void)
{
	setup_both();
	mem.files = mistake == NO_HOLD ? 1 : 2;
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "waits twice",
	    .setup = setup,
	    .thread = { runner, writer } },
	  FX_MISTAKE(POLLS_FIRST) | FX_MISTAKE(NO_SECOND_LOOK) |
		  FX_MISTAKE(NO_FENCE) },
	{ { .name = "waits twice, and somebody takes it away",
	    .setup = setup_both,
	    .thread = { runner, writer, take_away } },
	  FX_MISTAKE(TAKES_CLAIMED) },
	{ { .name = "closed while it waits",
	    .setup = setup_held,
	    .thread = { runner_once, write_once, put_file, take_away } },
	  FX_MISTAKE(NO_HOLD) },
	{ { .name = "closed, taken away by two sets",
	    .setup = setup_both,
	    .thread = { write_once, put_file, take_away, take_other_away } },
	  FX_MISTAKE(UNASKED) | FX_MISTAKE(OUTSIDE_RCU) |
		  FX_MISTAKE(FREED_AT_ONCE) },
};

static const char *const mistake_names[] = {
	[POLLS_FIRST] = "polled before the claim",
	[NO_SECOND_LOOK] = "woken while it polled",
	[NO_FENCE] = "hung up without a fence",
	[UNASKED] = "off a queue that is gone",
	[OUTSIDE_RCU] = "looked for the queue outside of a section",
	[FREED_AT_ONCE] = "freed under a wake-up",
	[TAKES_CLAIMED] = "taken away while it is claimed",
	[NO_HOLD] = "waits without the file",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}

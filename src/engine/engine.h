/* SPDX-License-Identifier: MIT */
/*
 * The engine contract. An engine takes entries, completes each exactly once,
 * and can cancel; it knows neither events nor user threads. One instance
 * serves one owner (a loop, a run queue) and is called by that owner's thread
 * only. engine/select.c alone knows which engines exist.
 *
 * The way of a call:
 *   attempt()  may finish it at once, without an entry;
 *   post()     takes entries that the owner has claimed and filled;
 *   flush()    end of a batch of postings;
 *   work()     carries on with what became ready since;
 *   wait()     sleeps until there is something to reap, or to work on.
 * What completes lies in `local` if the owner's thread completed it, else on
 * the completion ring of the set; the owner takes it from there.
 */
#ifndef FX_ENGINE_ENGINE_H
#define FX_ENGINE_ENGINE_H

#include "base/types.h"
#include "engine/desc.h"
#include "engine/local.h"
#include "page/counters.h"
#include "page/set.h"

#include <string.h>
#include <sys/types.h>

struct fx_engine;

struct fx_engine_config {
	const struct fx_call_desc *table; /* FX_NR_CALLS numbers */
	struct fx_set *set; /* the owner's */
	struct flexsc_counters *counters;
	int64_t *heads; /* the owner's; see struct fx_engine */
	uint32_t max_threads;
	uint64_t spin_ns; /* FX_NEVER: decide */
	bool keeps_files; /* see engine/hold.h; fx_hold_init() came before */
	bool leaves; /* the owner can be relieved: see enum fx_outside */
};

/*
 * Nothing interrupts a thread that waits for storage. So an owner that can be
 * relieved of its engine makes such a call itself, by fx_call_raw(), while it
 * does not hold the engine; then it tells the one that it holds afterwards.
 */
enum fx_outside {
	FX_INSIDE,
	FX_OUTSIDE,
	FX_OUTSIDE_TIMED
};

/* What came of fx_engine_ops.begin. */
enum fx_begun {
	FX_BEGUN_DONE, /* as attempt(): true */
	FX_BEGUN_NOT, /* as attempt(): false */
	/*
	 * Not attempted. LATER: it would rather find what it waits for if
	 * others ran first; then again, with 0 of them. TOGETHER: it answers
	 * somebody; attempted with others like it, it would be cheaper.
	 */
	FX_BEGUN_LATER,
	FX_BEGUN_TOGETHER,
};

struct fx_engine_ops {
	const char *name;
	const char *summary;

	/**
	 * usable - can it work on this machine, in this process?
	 * @reason: a sentence either way, if it can or why not
	 */
	bool (*usable)(char *reason, size_t size);

	/* new and free; free only with nothing in flight. */
	int (*new)(struct fx_engine **engine,
		   const struct fx_engine_config *config);
	void (*free)(struct fx_engine *engine);
	/* In a forked child: descriptors and memory go, calls are forgotten. */
	void (*abandon)(struct fx_engine *engine);

	/**
	 * attempt - finish a call at once, if that takes no waiting
	 * @call: private memory; its flags are 0. ret is set on success and
	 *        else keeps what was done so far
	 *
	 * Called for the classes of `attempts` and for FX_CALL_SELF, whose
	 * calls must be finished here. If it says no, post() of the same
	 * call follows at once, or nothing for want of an entry; or
	 * `outside` says that there is another way.
	 *
	 * Return: true if call->ret is the result.
	 */
	bool (*attempt)(struct fx_engine *engine, struct flexsc_entry *call);

	/**
	 * begin - attempt(), unless that is better made later. Or NULL
	 * @nr_others: so many the owner can run meanwhile
	 * @gathers: it would make several answers in a row
	 */
	enum fx_begun (*begin)(struct fx_engine *engine,
			       struct flexsc_entry *call, uint32_t nr_others,
			       bool gathers);
	/*
	 * One was made by attempt() for which it said TOGETHER; its task runs
	 * after @nr_others others.
	 */
	void (*answered)(struct fx_engine *engine,
			 const struct flexsc_entry *call, uint32_t nr_others);

	/*
	 * The call that went outside is over. @ns: how long it took, for
	 * FX_OUTSIDE_TIMED; else 0. NULL: then nothing goes outside.
	 */
	void (*made)(struct fx_engine *engine, const struct flexsc_entry *call,
		     uint64_t ns);

	/**
	 * attempt_chain - the same for the first calls of a chain; or NULL
	 * @calls: private memory; results are told to the calls behind
	 *
	 * If not all of them are done, post() of the whole chain follows at
	 * once: entries that are done keep their ret and only complete.
	 *
	 * Return: how many are done.
	 */
	unsigned (*attempt_chain)(struct fx_engine *engine,
				  struct flexsc_entry *calls, unsigned nr);

	/**
	 * post - take entries: one, or a chain in order
	 * @indices: claimed and filled, not published
	 *
	 * Cannot fail: what an engine cannot take, its threads do.
	 */
	void (*post)(struct fx_engine *engine, const uint32_t *indices,
		     unsigned nr);
	/* Needed after postings, and before each wait; see `publishes`. */
	void (*flush)(struct fx_engine *engine);

	/**
	 * quiet - a look that costs nothing: can work() and wait(0) be left
	 * out? NULL: always.
	 *
	 * The kernel is asked only now and then; the looks in between are
	 * counted here.
	 */
	bool (*quiet)(struct fx_engine *engine);

	/**
	 * work - carry on with what became ready, up to @max calls
	 *
	 * NULL: no call is carried out by the owner's thread in this way.
	 */
	void (*work)(struct fx_engine *engine, unsigned max);

	/**
	 * wait - sleep until there may be something to reap or to work on
	 * @timeout_ns: 0 only looks; FX_NEVER has no limit
	 *
	 * May return early, for a signal too. May help with pending work.
	 */
	void (*wait)(struct fx_engine *engine, uint64_t timeout_ns);

	/* Another thread asks the owner to come back from wait(). */
	void (*interrupt)(struct fx_engine *engine);

	/**
	 * cancel - ask that a posted entry ends
	 *
	 * Return: 0 asked; -EALREADY complete, or asked before.
	 */
	int (*cancel)(struct fx_engine *engine, uint32_t index);

	/**
	 * closing - a descriptor is about to be closed or was replaced
	 *
	 * Parked calls on it complete with -ECANCELED.
	 */
	void (*closing)(struct fx_engine *engine, int fd);

	/**
	 * patient - calls on a descriptor wait, O_NONBLOCK or not
	 *
	 * Until it is closed. NULL: they cannot. Return: 0 or -ENOMEM.
	 */
	int (*patient)(struct fx_engine *engine, int fd);

	/**
	 * moving - a descriptor is about to be closed, calls keep its file
	 * @to: the same file, private; -1: there is none, they are over
	 *
	 * In place of closing(), with keeps_files. Calls that hold @fd are
	 * made on @to from now on, and hold that.
	 *
	 * Return: false if some still hold @fd: again after work().
	 */
	bool (*moving)(struct fx_engine *engine, int fd, int to);

	/**
	 * fd - descriptor to wait on instead of wait()
	 *
	 * Readable when there may be something to do, after arm().
	 */
	int (*fd)(struct fx_engine *engine);

	/* Nanoseconds until wait() wants to be called in any case. */
	uint64_t (*due)(struct fx_engine *engine);

	/* Before sleeping elsewhere; false: there is something to do. */
	bool (*arm)(struct fx_engine *engine);

	/**
	 * enter - what flush() and work() would do, and they do nothing else:
	 * one crossing into the kernel that carries calls out in this thread
	 *
	 * While engine->enters; NULL: never. It touches nothing of the engine
	 * that changes, so an owner that can be relieved need not hold it
	 * meanwhile: a thread that stands by goes on with the engine if this
	 * one blocks in a call (flexsc-osdi10.txt, 3.5; sched/claim.h).
	 *
	 * Return: for entered(), by who still holds the engine; who has lost
	 * it calls interrupt(). A new holder begins with a flush().
	 */
	long (*enter)(struct fx_engine *engine);
	void (*entered)(struct fx_engine *engine, long ret);
};

/* First member of every engine's own structure. */
struct fx_engine {
	const struct fx_engine_ops *ops;
	uint32_t attempts; /* bits 1 << class: attempt() is worth calling */
	/* fx_engine_publish() is in force. */
	bool publishes;
	bool leaves; /* as configured */
	bool enters; /* calls are carried out by enter(), at present */
	enum fx_outside outside; /* O: of an attempt() that said no */
	const struct fx_call_desc *table;
	struct fx_set *set;
	struct flexsc_counters *counters;
	/*
	 * O: kernel thread that holds the engine, where pthread_self() does
	 * not tell; 0: it does
	 */
	pid_t holder;
	/*
	 * O, the owner's: how entries begin whose calls only have to be
	 * published (union fx_head), those of more than four arguments with
	 * FX_HEAD_LONG, by which they are negative; others are 0
	 */
	int64_t *heads;
};

#define FX_HEAD_LONG INT64_MIN

#define FX_ATTEMPT_ALL UINT32_MAX

static inline void fx_engine_setup(struct fx_engine *engine,
				   const struct fx_engine_ops *ops,
				   const struct fx_engine_config *config)
{
	engine->ops = ops;
	engine->attempts = FX_ATTEMPT_ALL;
	engine->table = config->table;
	engine->set = config->set;
	engine->counters = config->counters;
	engine->heads = config->heads;
	memset(engine->heads, 0, FX_NR_CALLS * sizeof(*engine->heads));
	engine->leaves = config->leaves && ops->made;
}

/*
 * From now on post() is nothing but fx_set_publish(), except of calls that
 * are attempted or need a look before; flush() is for postings only.
 */
void fx_engine_publish(struct fx_engine *engine, uint32_t attempts);
/* And calls of this number, too. */
void fx_engine_publish_call(struct fx_engine *engine, unsigned nr);
/* And no more. */
void fx_engine_unpublish(struct fx_engine *engine);

static inline const struct fx_call_desc *
fx_engine_desc(const struct fx_engine *engine, unsigned int nr)
{
	static const struct fx_call_desc absent = { .fd_arg = -1 };

	return nr < FX_NR_ROWS ? &engine->table[nr] : &absent;
}

#endif /* FX_ENGINE_ENGINE_H */

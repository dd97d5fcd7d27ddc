/* SPDX-License-Identifier: MIT */
/*
 * The inside of a loop. Key: O owner's thread only; A any thread, atomically.
 *
 * Life of an event (state_): IDLE -> one of the others -> IDLE, which it is
 * again when its handler is called.
 */
#ifndef FX_LOOP_LOOP_H
#define FX_LOOP_LOOP_H

#include "call/owner.h"
#include "loop/timer.h"

#include <flexsc.h>
#include <pthread.h>
#include <string.h>

enum fx_event_state {
	FX_EVENT_IDLE = 0,
	FX_EVENT_POSTED, /* index_ is its entry */
	FX_EVENT_READY, /* ret is known, the handler is still to be called */
	FX_EVENT_QUEUED, /* waits for an entry, the call is in the event */
	FX_EVENT_TIMER,
	FX_EVENT_SENT, /* on its way from another thread */
	FX_EVENT_COLLECTED, /* part of a chain not posted yet */
};

/* Beside the state: a time-out asked for the cancel. */
#define FX_EVENT_TIMED_OUT 0x100
#define FX_EVENT_STATE(ev) ((enum fx_event_state)((ev)->state_ & 0xff))

/* Why postings take the long way. */
enum fx_loop_mode {
	FX_LOOP_NONE = 1, /* there is no loop */
	FX_LOOP_COLLECTING = 2, /* between chain_begin and chain_end */
	FX_LOOP_ARMED = 4, /* embedded, and asleep in the outer loop */
	FX_LOOP_BROKEN = 8, /* could not be rebuilt after fork */
};

struct fx_event_list {
	struct flexsc_event *first;
	struct flexsc_event *last;
};

/* The chain being collected. */
struct fx_collect {
	bool always, timed; /* timed: one of them has a time-out */
	int bad;
	unsigned nr;
	struct flexsc_entry calls[FLEXSC_CHAIN_MAX];
	struct flexsc_event *events[FLEXSC_CHAIN_MAX];
};

struct fx_loop_began;

struct flexsc_loop {
	struct fx_owner owner; /* O */
	struct fx_event_list ready; /* O */
	struct fx_event_list queued; /* O */
	struct fx_timers timers; /* O */
	size_t waiting; /* O: events outstanding without an entry */
	unsigned busy_rounds; /* O: rounds since the kernel was asked */
	uint64_t mode; /* O: enum fx_loop_mode */
	bool running; /* O: inside a round */
	int outer_fd, timer_fd, nudge_fd; /* O: embedding, or -1 */
	struct fx_collect collect; /* O */
	struct fx_loop_began *began; /* O: by entry; see loop/seen.h */
	size_t began_size; /* O */
	struct flexsc_event *sent; /* A: stack from other threads */
	uint32_t interrupted; /* A: an interrupt is on its way */
	uint32_t stop; /* A */
	pthread_t thread; /* O: whose loop it is */
	bool broken; /* FX_LOOP_BROKEN, for other threads */
	struct fx_owner_options options;
	char engine_name[16];
	struct flexsc_loop *next; /* registry, for fork */
};

extern __thread struct flexsc_loop *fx_loop_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The same, or one that is FX_LOOP_NONE: for postings. */
extern __thread struct flexsc_loop *fx_loop_posting
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline void fx_event_list_add(struct fx_event_list *list,
				     struct flexsc_event *ev)
{
	ev->next_ = NULL;
	if (list->last)
		list->last->next_ = ev;
	else
		list->first = ev;
	list->last = ev;
}

static inline struct flexsc_event *fx_event_list_pop(struct fx_event_list *list)
{
	struct flexsc_event *ev = list->first;

	if (!ev)
		return NULL;
	list->first = ev->next_;
	if (!list->first)
		list->last = NULL;
	return ev;
}

bool fx_event_list_remove(struct fx_event_list *list, struct flexsc_event *ev);

/* The event waits for an entry: state and index are stored as one. */
static inline void fx_event_posted(struct flexsc_event *ev, uint32_t index)
{
	const struct {
		uint32_t index;
		uint16_t state, nr;
	} both = { index, FX_EVENT_POSTED, 0 };

	_Static_assert(offsetof(struct flexsc_event, state_) ==
			       offsetof(struct flexsc_event, index_) + 4,
		       "index and state are neighbours");
	memcpy(&ev->index_, &both, sizeof(both));
}

static inline size_t fx_loop_outstanding(const struct flexsc_loop *loop)
{
	return fx_set_claimed(&loop->owner.set) + loop->waiting;
}

/* Waits for readiness are no system calls. */
static inline void fx_loop_count_call(struct flexsc_loop *loop, unsigned nr)
{
	if (fx_likely(nr < FX_NR_CALLS))
		fx_count(loop->owner.counters, calls[nr]);
}

/* loop/post.c */
/* flexsc_post() of a call with four arguments at most (call-wrappers.c). */
int fx_post_short(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
		  long a2, long a3);
/* The same for more. */
int fx_post_long(struct flexsc_event *ev, unsigned int nr, long a0, long a1,
		 long a2, long a3, long a4, long a5);
/* The result is known: the next round calls the handler. */
void fx_loop_ready(struct flexsc_loop *loop, struct flexsc_event *ev,
		   int64_t ret);
/* Post what waited for an entry, as far as there are some now. */
void fx_loop_unqueue(struct flexsc_loop *loop);

/* loop/chain.c */
/* @nr is below FX_NR_CALLS; @args are six. */
int fx_loop_collect(struct flexsc_loop *loop, struct flexsc_event *ev,
		    unsigned int nr, const __u64 *args);

/* loop/cancel.c */
void fx_loop_time_out(struct flexsc_loop *loop, struct flexsc_event *ev);

/* loop/embed.c */
/* A round is over: make the outer descriptor tell of the next one. */
void fx_loop_arm(struct flexsc_loop *loop);
/* Something became ready between rounds. */
void fx_loop_nudge(struct flexsc_loop *loop);
void fx_loop_disarm(struct flexsc_loop *loop);
void fx_loop_embed_fini(struct flexsc_loop *loop);

/* loop/send.c */
void fx_loop_receive(struct flexsc_loop *loop);

/* loop/fork.c */
void fx_loop_register(struct flexsc_loop *loop);
void fx_loop_unregister(struct flexsc_loop *loop);

#endif /* FX_LOOP_LOOP_H */

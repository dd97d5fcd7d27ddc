/* SPDX-License-Identifier: MIT */
/* Looking at another process; see cli/observe.h. */
#include "cli/observe.h"

#include "cli/duration.h"
#include "cli/memory.h"
#include "cli/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROCESS_NAME "/memfd:flexsc-process"
#define COUNTERS_NAME "/memfd:flexsc-counters"

enum {
	/* More of them are not believed: what was read is not a list. */
	MAX_THREADS = 1 << 22,
	MAX_CARRIERS = 1 << 16,
	MAX_QUEUES = 1 << 16,
	MAX_REASONS = 256,
	MAX_RECORD = 4096
};

/* With what users of observe.h see. */
struct whole {
	struct observed seen;
	pid_t own_pid; /* as the process sees itself */
	uint64_t start; /* of the process, so that it is not another one's pid */
	struct flexsc_process process; /* magic 0: it has no user threads */
	uint64_t shown_at; /* its address there */
	struct memory memory;
	struct tids *tids;
	struct duration_share share;
};

/* Finding it ----------------------------------------------------------------- */

struct found {
	struct whole *w;
	uint64_t *at;
	unsigned int nr;
	bool failed;
};

static void note(uint64_t begin, uint64_t end, void *arg)
{
	struct found *f = arg;
	uint64_t *grown = reallocarray(f->at, f->nr + 1, sizeof(*f->at));

	if (!grown) {
		f->failed = true;
		return;
	}
	f->at = grown;
	f->at[f->nr++] = begin;
}

/* A forked child may still have its parent's: pid says whose it is. */
static void find_process(struct whole *w)
{
	struct found f = { .w = w };
	struct flexsc_process p;

	memset(&w->process, 0, sizeof(w->process));
	memory_mappings(w->seen.pid, PROCESS_NAME, note, &f);
	for (unsigned int i = 0; i < f.nr; i++) {
		if (memory_read(&w->memory, f.at[i], &p, sizeof(p)) == 0 &&
		    p.magic == FLEXSC_PROCESS_MAGIC &&
		    p.version == FLEXSC_PROCESS_VERSION &&
		    p.size >= sizeof(p) && p.pid == (uint32_t)w->own_pid &&
		    p.nr_queues <= MAX_QUEUES && p.nr_reasons <= MAX_REASONS) {
			w->process = p;
			w->shown_at = f.at[i];
		}
	}
	free(f.at);
}

/* Splits "a b c"; returns how many. */
static unsigned int split(const char *names, size_t size, char ***to)
{
	char *copy = strndup(names, size), *rest = copy, *name;
	char **grown, **list = NULL;
	unsigned int nr = 0;

	while (copy && (name = strtok_r(NULL, " ", &rest))) {
		grown = reallocarray(list, nr + 1, sizeof(*list));
		if (!grown)
			break;
		list = grown;
		list[nr++] = strdup(name);
	}
	free(copy);
	*to = list;
	return nr;
}

static void read_reasons(struct whole *w)
{
	unsigned int nr = w->process.nr_reasons;
	uint64_t address;
	char name[32];

	w->seen.reasons = calloc(nr + 1, sizeof(*w->seen.reasons));
	if (!w->seen.reasons)
		return;
	w->seen.nr_reasons = nr;
	for (unsigned int i = 0; i < nr; i++)
		if (memory_read(&w->memory,
				w->process.reasons + i * sizeof(address),
				&address, sizeof(address)) == 0 &&
		    address &&
		    memory_string(&w->memory, address, name, sizeof(name)) == 0)
			w->seen.reasons[i] = strdup(name);
}

static void read_names(struct whole *w)
{
	struct flexsc_process *p = &w->process;

	memcpy(w->seen.declined, p->declined, sizeof(w->seen.declined));
	w->seen.declined[sizeof(w->seen.declined) - 1] = '\0';
	read_reasons(w);
	w->seen.nr_queue_names = split(p->queue_count_names,
				       sizeof(p->queue_count_names),
				       &w->seen.queue_names);
	w->seen.nr_thread_names = split(p->thread_count_names,
					sizeof(p->thread_count_names),
					&w->seen.thread_names);
}

static int count_loops(struct whole *w)
{
	struct found f = { .w = w };
	int nr = memory_mappings(w->seen.pid, COUNTERS_NAME, note, &f);

	free(f.at);
	return nr;
}

/* Return: 0, or a negative errno; 1: it is there, and does not use FlexSC. */
static int find(struct whole *w)
{
	unsigned char byte;
	int loops = count_loops(w);

	if (loops < 0)
		return loops;
	find_process(w);
	if (w->process.magic || loops)
		return 0;
	/* Is it that nothing can be read? Any address answers that. */
	return memory_read(&w->memory, 0, &byte, 1) == -EPERM ? -EPERM : 1;
}

static void say_why(struct whole *w, int bad, char *why)
{
	const char *text = strerror(-bad);

	if (bad == -ESRCH || bad == -ENOENT)
		text = "there is no such process";
	else if (bad == -EPERM || bad == -EACCES)
		text = "not permitted: its user or root may look at it "
		       "(and kernel.yama.ptrace_scope must be 0)";
	else if (bad == 1 &&
		 proc_maps_library(w->seen.pid, "libflexsc-threads"))
		text = "it is on FlexSC-Threads and has made no thread yet";
	else if (bad == 1)
		text = "it does not use FlexSC (start it with `flexsc run`)";
	snprintf(why, OBSERVE_REASON, "%s", text);
}

struct observed *observe_new(pid_t pid, char why[OBSERVE_REASON])
{
	struct whole *w = calloc(1, sizeof(*w));
	int bad = -ENOMEM;

	if (!w) {
		snprintf(why, OBSERVE_REASON, "%s", strerror(ENOMEM));
		return NULL;
	}
	w->seen.pid = w->memory.pid = pid;
	w->start = proc_start(pid);
	w->own_pid = proc_own_pid(pid);
	w->tids = tids_new(pid);
	proc_name(pid, 0, w->seen.program, sizeof(w->seen.program));
	if (w->tids)
		bad = w->start ? find(w) : -ESRCH;
	if (bad) {
		say_why(w, bad, why);
		observe_free(&w->seen);
		return NULL;
	}
	if (w->process.magic)
		read_names(w);
	return &w->seen;
}

static void free_names(char **names, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		free(names[i]);
	free(names);
}

void observe_free(struct observed *observed)
{
	struct whole *w = (struct whole *)observed;

	if (!w)
		return;
	free_names(observed->reasons, observed->nr_reasons);
	free_names(observed->queue_names, observed->nr_queue_names);
	free_names(observed->thread_names, observed->nr_thread_names);
	tids_free(w->tids);
	free(w);
}

/* Looking --------------------------------------------------------------------- */

/* One more element at the end of an array; NULL without memory. */
static void *grow(void *array, unsigned int nr, size_t size)
{
	/* Doubled at powers of two. */
	if (nr & (nr - 1))
		return array;
	return reallocarray(array, nr ? nr * 2 : 1, size);
}

#define APPEND(look, what)                                             \
	({                                                             \
		void *grown_ = grow((look)->what, (look)->nr_##what,   \
				    sizeof(*(look)->what));            \
		if (grown_)                                            \
			(look)->what = grown_;                         \
		grown_ ? memset(&(look)->what[(look)->nr_##what++], 0, \
				sizeof(*(look)->what)) :               \
			 NULL;                                         \
	})

/* A field of a record that was read whole. */
#define FIELD(record, layout, field, type)                                   \
	({                                                                   \
		type value_;                                                 \
		memcpy(&value_, (record) + (layout)->field, sizeof(value_)); \
		value_;                                                      \
	})

/* The end of the last of some fields, all of them of 8 bytes at most. */
static size_t extent(const uint16_t *offsets, unsigned int nr)
{
	size_t most = 0;

	for (unsigned int i = 0; i < nr; i++)
		if (offsets[i] > most)
			most = offsets[i];
	return most + 8 <= MAX_RECORD ? most + 8 : MAX_RECORD;
}

static void look_at_queue(struct whole *w, struct look *look, uint64_t address)
{
	const struct flexsc_queue_layout *l = &w->process.queue;
	size_t counts = w->seen.nr_queue_names * sizeof(uint64_t);
	size_t size = extent(&l->cpu, sizeof(*l) / sizeof(uint16_t)) + counts;
	unsigned char record[MAX_RECORD + 4096];
	struct seen_queue *q;

	if (counts > 4096 || memory_read(&w->memory, address, record, size))
		return;
	q = APPEND(look, queues);
	if (!q)
		return;
	q->cpu = FIELD(record, l, cpu, int32_t);
	q->sleeps = FIELD(record, l, sleeping, uint32_t);
	q->rests = FIELD(record, l, rests, uint32_t);
	q->ready = FIELD(record, l, tail, uint64_t) -
		   FIELD(record, l, head, uint64_t);
	q->calls_address = FIELD(record, l, counters, uint64_t);
	q->carrier = -1;
	q->counts = malloc(counts + 1);
	if (q->counts)
		memcpy(q->counts, record + l->counts, counts);
}

static void look_at_queues(struct whole *w, struct look *look,
			   uint64_t *addresses)
{
	for (unsigned int i = 0; i < w->process.nr_queues; i++)
		if (memory_read(&w->memory,
				w->process.queues + i * sizeof(*addresses),
				&addresses[i], sizeof(*addresses)) == 0)
			look_at_queue(w, look, addresses[i]);
}

static void look_at_carriers(struct whole *w, struct look *look,
			     const uint64_t *queues)
{
	const struct flexsc_carrier_layout *l = &w->process.carrier;
	size_t size = extent(&l->next, sizeof(*l) / sizeof(uint16_t));
	unsigned char record[MAX_RECORD];
	struct seen_carrier *c;
	uint64_t next, queue;

	if (memory_read(&w->memory, w->process.carriers, &next, sizeof(next)))
		return;
	while (next && look->nr_carriers < MAX_CARRIERS &&
	       memory_read(&w->memory, next, record, size) == 0) {
		c = APPEND(look, carriers);
		if (!c)
			return;
		c->tid = tids_here(w->tids, FIELD(record, l, tid, int32_t));
		c->switches = FIELD(record, l, switches, uint32_t);
		c->lost = FIELD(record, l, lost, uint32_t);
		c->queue = -1;
		proc_thread(w->seen.pid, c->tid, &c->state, &c->cpu_ns);
		queue = FIELD(record, l, queue, uint64_t);
		for (unsigned int i = 0; !c->lost && i < look->nr_queues; i++)
			if (queue && queues[i] == queue) {
				c->queue = (int)i;
				look->queues[i].carrier =
					(int)look->nr_carriers - 1;
			}
		next = FIELD(record, l, next, uint64_t);
	}
}

/* What a thread looks like between the two reads of its state. */
struct reading {
	uint64_t state, again;
	uint64_t where;
	uint64_t call; /* address of an entry; 0: none */
};

static void read_thread(struct whole *w, const unsigned char *record,
			struct seen_thread *t, struct reading *r)
{
	const struct flexsc_thread_layout *l = &w->process.thread;
	struct timespec now;
	uint64_t on = FIELD(record, l, on, uint64_t);
	unsigned int stays = FIELD(record, l, stays, uint8_t);

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	r->state = r->again = FIELD(record, l, state, uint64_t);
	r->where = FIELD(record, l, where, uint64_t);
	t->at_home = !FIELD(record, l, carrier, uint64_t);
	t->cpu_ns = FIELD(record, l, cpu_ns, uint64_t);
	t->stays = stays && stays < w->seen.nr_reasons ?
			   w->seen.reasons[stays] :
			   NULL;
	switch (r->state & 0xff) {
	case FLEXSC_THREAD_PARKED_AT_HOME:
	case FLEXSC_THREAD_PARKED:
		t->doing = DOING_PARKED;
		t->at_home = (r->state & 0xff) == FLEXSC_THREAD_PARKED_AT_HOME;
		t->for_ms =
			(uint32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000) -
			FIELD(record, l, since_ms, uint32_t);
		if (on & FLEXSC_ON_CALL)
			r->call = on & ~(uint64_t)FLEXSC_ON_CALL;
		else
			t->on = on;
		break;
	case FLEXSC_THREAD_READY:
		t->doing = DOING_READY;
		break;
	default:
		t->doing = t->at_home ? DOING_HOME : DOING_RUNS;
	}
}

/* Where it is parked for a call, that call; if it is still the same parking. */
static void read_calls(struct whole *w, struct look *look,
		       struct reading *readings)
{
	struct memory_part *parts =
		calloc(2 * look->nr_threads + 1, sizeof(*parts));
	unsigned int nr = 0;

	for (unsigned int i = 0; parts && i < look->nr_threads; i++) {
		if (!readings[i].call)
			continue;
		parts[nr++] = (struct memory_part){
			readings[i].call, &look->threads[i].call,
			sizeof(look->threads[i].call), false
		};
		parts[nr++] = (struct memory_part){
			look->threads[i].record + w->process.thread.state,
			&readings[i].again, sizeof(readings[i].again), false
		};
	}
	if (parts)
		memory_read_parts(&w->memory, parts, nr);
	for (unsigned int i = 0, n = 0; n < nr; i++) {
		if (!readings[i].call)
			continue;
		look->threads[i].has_call = parts[n].had && parts[n + 1].had &&
					    readings[i].again ==
						    readings[i].state;
		n += 2;
	}
	free(parts);
}

/* There are few of these strings, and many threads. */
static void read_wheres(struct whole *w, struct look *look,
			const struct reading *readings)
{
	const struct seen_thread *before = NULL;
	uint64_t last = 0;

	for (unsigned int i = 0; i < look->nr_threads; i++) {
		struct seen_thread *t = &look->threads[i];

		if (t->doing != DOING_PARKED || !readings[i].where)
			continue;
		/* `before` may do nothing; its string is as good. */
		if (before && readings[i].where == last)
			memcpy(t->where, before->where, sizeof(t->where));
		else
			memory_string(&w->memory, readings[i].where, t->where,
				      sizeof(t->where));
		last = readings[i].where;
		before = t;
		if (strcmp(t->where, "idle") == 0)
			t->doing = DOING_NOTHING;
	}
}

static void look_at_threads(struct whole *w, struct look *look)
{
	const struct flexsc_thread_layout *l = &w->process.thread;
	size_t size = extent(&l->next, sizeof(*l) / sizeof(uint16_t));
	struct reading *readings = NULL, *grown;
	unsigned char record[MAX_RECORD];
	uint64_t at = 0, next;
	struct seen_thread *t;
	pid_t tid;

	if (memory_read(&w->memory, w->process.threads, &next, sizeof(next)))
		return;
	for (unsigned int n = 0; next && next != at && n < MAX_THREADS; n++) {
		at = next;
		if (memory_read(&w->memory, at, record, size))
			break;
		next = FIELD(record, l, next, uint64_t);
		tid = FIELD(record, l, tid, int32_t);
		if (!tid)
			continue;
		grown = grow(readings, look->nr_threads, sizeof(*readings));
		if (!grown)
			break;
		readings = grown;
		t = APPEND(look, threads);
		if (!t)
			break;
		memset(&readings[look->nr_threads - 1], 0, sizeof(*readings));
		t->record = at;
		t->tid = tids_here(w->tids, tid);
		proc_name(w->seen.pid, t->tid, t->name, sizeof(t->name));
		read_thread(w, record, t, &readings[look->nr_threads - 1]);
	}
	read_calls(w, look, readings);
	read_wheres(w, look, readings);
	free(readings);
}

static uint64_t *read_counts(struct whole *w, uint64_t address, unsigned int nr)
{
	uint64_t *counts = calloc(nr + 1, sizeof(*counts));

	if (counts)
		memory_read(&w->memory, address, counts, nr * sizeof(*counts));
	return counts;
}

static void look_at_calls(struct whole *w, struct look *look)
{
	struct found f = { .w = w };
	struct seen_calls *c;

	memory_mappings(w->seen.pid, COUNTERS_NAME, note, &f);
	for (unsigned int i = 0; i < f.nr; i++) {
		c = APPEND(look, calls);
		if (!c)
			break;
		c->address = f.at[i];
		if (memory_read(&w->memory, f.at[i], &c->counters,
				sizeof(c->counters)) ||
		    c->counters.magic != FLEXSC_COUNTERS_MAGIC ||
		    c->counters.version != FLEXSC_COUNTERS_VERSION ||
		    c->counters.pid != (uint32_t)w->own_pid) {
			look->nr_calls--;
			continue;
		}
		c->counters.engine[sizeof(c->counters.engine) - 1] = '\0';
		for (unsigned int q = 0; q < look->nr_queues; q++)
			c->of_queue |= look->queues[q].calls_address == f.at[i];
	}
	free(f.at);
}

/* Is it the first owner of its library? */
static bool is_first(const struct look *look, unsigned int i)
{
	for (unsigned int n = 0; n < i; n++)
		if (look->calls[n].counters.trace ==
		    look->calls[i].counters.trace)
			return false;
	return look->calls[i].counters.trace;
}

/* Of each library once, however many owners it has. */
static void look_at_latency(struct whole *w, struct look *look)
{
	struct duration_share *share = &w->share;
	uint32_t ms, longest = 0;
	uint64_t posted = 0;

	if (!look->nr_calls || !w->seen.latency_ms)
		return;
	look->latency = calloc(FLEXSC_TRACE_CALLS, sizeof(*look->latency));
	look->made = malloc(sizeof(share->made));
	if (!look->latency || !look->made)
		return;
	for (unsigned int i = 0; i < look->nr_calls; i++) {
		posted += look->calls[i].counters.completed;
		if (is_first(look, i))
			duration_add(w->seen.pid, look->calls[i].counters.trace,
				     look->latency);
	}
	ms = duration_share(share, look->at_ns, look->latency, posted,
			    w->seen.interval_ms, w->seen.latency_ms);
	memcpy(look->made, share->made, sizeof(share->made));
	for (unsigned int i = 0; i < look->nr_calls; i++) {
		uint32_t got =
			!is_first(look, i) ?
				0 :
				duration_ask(w->seen.pid,
					     look->calls[i].counters.trace, ms);

		if (got > longest)
			longest = got;
	}
	if (share->until_ns < look->at_ns + longest * 1000000ull)
		share->until_ns = look->at_ns + longest * 1000000ull;
}

/* By execve() a process becomes another program, which may use FlexSC, too. */
static bool still_shown(struct whole *w)
{
	struct flexsc_process p;

	return memory_read(&w->memory, w->shown_at, &p, sizeof(p)) == 0 &&
	       memcmp(&p, &w->process, sizeof(p)) == 0;
}

int observe_look(struct observed *observed, struct look *look)
{
	struct whole *w = (struct whole *)observed;
	uint64_t *queues;
	struct timespec now;

	memset(look, 0, sizeof(*look));
	if (proc_start(observed->pid) != w->start)
		return -ESRCH;
	clock_gettime(CLOCK_MONOTONIC, &now);
	look->at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	memory_forget(&w->memory);
	if (!w->process.magic) {
		/* It may have begun to make threads. */
		find_process(w);
		if (w->process.magic)
			read_names(w);
	} else if (!still_shown(w)) {
		return -ESRCH;
	}
	look->has_threads = w->process.magic && !*observed->declined;
	if (look->has_threads) {
		tids_renew(w->tids);
		queues = calloc(w->process.nr_queues + 1, sizeof(*queues));
		if (queues) {
			look_at_queues(w, look, queues);
			look_at_carriers(w, look, queues);
		}
		free(queues);
		look_at_threads(w, look);
		look->homes =
			read_counts(w, w->process.homes, w->process.nr_reasons);
		look->thread_counts = read_counts(w, w->process.thread_counts,
						  w->seen.nr_thread_names);
	}
	look_at_calls(w, look);
	look_at_latency(w, look);
	return 0;
}

void look_free(struct look *look)
{
	for (unsigned int i = 0; i < look->nr_queues; i++)
		free(look->queues[i].counts);
	free(look->queues);
	free(look->carriers);
	free(look->threads);
	free(look->calls);
	free(look->homes);
	free(look->thread_counts);
	free(look->latency);
	free(look->made);
}

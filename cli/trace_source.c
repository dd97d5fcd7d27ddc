/* SPDX-License-Identifier: MIT */
/*
 * Finding what processes record, asking for it, reading it; see
 * cli/trace_source.h. No process is ever stopped, or waited for.
 */
#include "cli/trace_source.h"

#include "cli/memory.h"
#include "cli/proc.h"
#include "cli/trace_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <flexsc/counters.h>

#define COUNTERS_NAME "/memfd:flexsc-counters"

enum {
	ASK_EVERY_MS = 400,
	MAX_SLOTS = 4096,
	HEAD = 4096, /* of a slot, of the file, and of rings */
	BEFORE_RINGS =
		HEAD + FLEXSC_TRACE_CALLS * sizeof(struct flexsc_trace_latency),
};

/* What one ring was read up to. */
struct ring {
	uint64_t at, number;
	bool begun;
};

/* A library in a process. */
struct source {
	pid_t pid; /* 0: not known here */
	uint64_t start; /* of the process, so that it is not another one */
	uint64_t address; /* of its struct flexsc_trace there */
	char *slot; /* or NULL: by reading its memory */
	/* What of our file is mapped here, and where it lies there. */
	char *map; /* the slot, or rings alone; NULL: neither */
	uint64_t mapped;
	size_t map_size;
	uint32_t rings_slot; /* of the rings, if those are mapped; or 0 */
	struct flexsc_trace trace; /* as last read */
	struct ring ring[FLEXSC_TRACE_MAX_RINGS];
	uint64_t lost;
	uint32_t until_ms; /* as we asked last */
	uint32_t lapses; /* when it was found */
	uint64_t dropped; /* before that, or before its rings were ours */
	/* Calls counted, of FLEXSC_TRACE_CALLS numbers: before us, and now; or NULL. */
	struct flexsc_trace_latency *before, *now;
	bool skips; /* what others have asked for before is not for us */
	bool looked, ended;
};

struct process {
	pid_t pid;
	uint64_t start;
	struct tids *tids;
	bool child;
};

struct trace_sources {
	struct trace_wish wish;
	struct source *source;
	struct process *process;
	unsigned int nr_sources, nr_processes;
	uint32_t asked_ms; /* 0: never */
	uint64_t lost_before,
		lapses_before; /* of sources that have been freed */
	struct flexsc_trace_file *file;
	uint32_t offer[2]; /* the file, for those that run: pid, descriptor; or 0 */
	pid_t started; /* with the file; 0: none */
	uint32_t pid_namespace; /* ours, by its inode; 0: not known */
	struct trace_count *count; /* of sources that have been freed */
	int fd;
	uint32_t slots; /* taken, as far as they have been seen */
	char *buffer; /* of a ring */
};

static uint32_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * 1000 +
			  (uint64_t)ts.tv_nsec / 1000000);
}

/* Memory of a source --------------------------------------------------------------- */

/* Or it was attached to processes. */
static bool is_started(const struct trace_sources *s)
{
	return s->file && !s->offer[0];
}

static uint64_t slot_size(const struct trace_sources *s)
{
	return s->file->slot_size;
}

static int get(const struct source *from, uint64_t address, void *to,
	       size_t size)
{
	struct iovec here = { to, size };
	struct iovec there = { (void *)(uintptr_t)address, size };
	uint64_t at = address - from->mapped;
	ssize_t got;

	if (from->map && at < from->map_size && size <= from->map_size - at) {
		memcpy(to, from->map + at, size);
		return 0;
	}
	if (from->slot)
		return -EFAULT;
	got = process_vm_readv(from->pid, &here, 1, &there, 1, 0);
	if (got < 0)
		return -errno;
	return (size_t)got == size ? 0 : -EFAULT;
}

static int put_by_kernel(const struct source *to, uint64_t address,
			 const void *from, size_t size)
{
	struct iovec here = { (void *)(uintptr_t)from, size };
	struct iovec there = { (void *)(uintptr_t)address, size };

	if (!to->pid)
		return -ESRCH;
	return process_vm_writev(to->pid, &here, 1, &there, 1, 0) < 0 ? -errno :
									0;
}

static int put(const struct source *to, uint64_t address, const void *from,
	       size_t size)
{
	if (!to->slot)
		return put_by_kernel(to, address, from, size);
	memcpy(to->slot + (address - to->address), from, size);
	return 0;
}

#define FIELD_AT(source, field) \
	((source)->address + offsetof(struct flexsc_trace, field))

/* Asking ----------------------------------------------------------------------------- */

static bool lives(uint32_t until_ms, uint32_t now)
{
	return until_ms && (int32_t)(until_ms - now) > 0;
}

/* Others may ask, too: only more is asked for, but where nobody does. */
static void ask_for(const struct trace_sources *s, struct source *to,
		    struct flexsc_trace *t)
{
	const struct trace_wish *wish = &s->wish;
	uint32_t now = now_ms(), until = (now + FLEXSC_TRACE_LEASE_MS) | 1;
	bool others = t->trace_until_ms != to->until_ms &&
		      lives(t->trace_until_ms, now);

	if (wish->count) {
		put(to, FIELD_AT(to, latency_until_ms), &until, sizeof(until));
		put(to, FIELD_AT(to, follow), &wish->follow, sizeof(t->follow));
		return;
	}
	for (unsigned int i = 0; i < FLEXSC_TRACE_CALLS / 64; i++)
		t->calls[i] = wish->calls[i] | (others ? t->calls[i] : 0);
	if (!others || t->bytes < wish->bytes)
		t->bytes = wish->bytes < 32 ? 32 : wish->bytes;
	t->follow = wish->follow || (others && t->follow);
	put(to, FIELD_AT(to, calls), t->calls, sizeof(t->calls));
	put(to, FIELD_AT(to, bytes), &t->bytes, sizeof(t->bytes));
	put(to, FIELD_AT(to, follow), &t->follow, sizeof(t->follow));
	if (!to->slot && !others)
		put(to, FIELD_AT(to, offer_pid), s->offer, sizeof(s->offer));
	put(to, FIELD_AT(to, trace_until_ms), &until, sizeof(until));
	to->until_ms = until;
}

static bool is_trace(const struct flexsc_trace *t, uint64_t address)
{
	return t->magic == FLEXSC_TRACE_MAGIC &&
	       t->version == FLEXSC_TRACE_VERSION && t->size >= sizeof(*t) &&
	       t->self == address;
}

/* By execve() it may have become another program since, or never have been it. */
static bool is_still_there(const struct source *source,
			   const struct flexsc_trace *t)
{
	struct source there = *source;
	struct flexsc_trace now;

	there.slot = there.map = NULL;
	return there.pid && !get(&there, there.address, &now, sizeof(now)) &&
	       is_trace(&now, there.address) && now.wanted == t->wanted &&
	       now.pid == t->pid;
}

static void ask(const struct trace_sources *s, struct source *to)
{
	struct flexsc_trace t;
	uint32_t one = 1;

	if (get(to, to->address, &t, sizeof(t)) || !is_trace(&t, to->address))
		return;
	if (!is_still_there(to, &t)) {
		/* In a namespace of its own: it has what we write into the file. */
		if (to->slot)
			ask_for(s, to, &t);
		return;
	}
	if (proc_filtered(to->pid))
		put(to, FIELD_AT(to, filtered), &one, sizeof(one));
	ask_for(s, to, &t);
	put_by_kernel(to, t.wanted, &one, sizeof(one));
}

/* Counting ----------------------------------------------------------------------------- */

enum {
	COUNTS = FLEXSC_TRACE_CALLS * sizeof(struct flexsc_trace_latency)
};

/* All that it has counted so far, by anybody's wish. */
static void read_counts(struct source *from)
{
	if (!from->now)
		from->now = calloc(1, COUNTS);
	if (from->now && from->trace.latencies)
		get(from, from->trace.latencies, from->now, COUNTS);
}

static void count_before(struct source *from)
{
	read_counts(from);
	from->before = from->now;
	from->now = NULL;
}

/* Finding ---------------------------------------------------------------------------- */

static struct source *add_source(struct trace_sources *s, pid_t pid,
				 uint64_t address, char *slot)
{
	struct source *grown = reallocarray(s->source, s->nr_sources + 1,
					    sizeof(*grown)),
		      *new;

	if (!grown)
		return NULL;
	s->source = grown;
	new = &grown[s->nr_sources];
	memset(new, 0, sizeof(*new));
	new->pid = pid;
	new->start = pid ? proc_start(pid) : 0;
	new->address = address;
	new->slot = new->map = slot;
	new->mapped = address;
	new->map_size = slot ? slot_size(s) : 0;
	if (get(new, address, &new->trace, sizeof(new->trace)) ||
	    !is_trace(&new->trace, address))
		return NULL;
	new->lapses = new->trace.lapses;
	new->dropped = new->trace.dropped;
	if (s->wish.count && !slot)
		count_before(new);
	s->nr_sources++;
	ask(s, new);
	return new;
}

struct finding {
	struct trace_sources *s;
	struct process *process;
	struct memory memory;
	unsigned int nr;
};

static void find_one(uint64_t begin, uint64_t end, void *arg)
{
	struct finding *f = arg;
	struct flexsc_counters c;
	struct source *new;

	if (memory_read(&f->memory, begin, &c, sizeof(c)) ||
	    c.magic != FLEXSC_COUNTERS_MAGIC ||
	    c.version != FLEXSC_COUNTERS_VERSION || !c.trace ||
	    c.pid != (uint32_t)proc_own_pid(f->process->pid))
		return;
	f->nr++;
	for (unsigned int i = 0; i < f->s->nr_sources; i++) {
		const struct source *old = &f->s->source[i];

		if (old->address == c.trace && !old->ended &&
		    (old->pid == f->process->pid ||
		     (old->slot && old->trace.pid == c.pid)))
			return;
	}
	new = add_source(f->s, f->process->pid, c.trace, NULL);
	if (new)
		new->skips = !f->process->child &&new->trace.rings;
}

/* Return: 0; 1: nothing yet; -errno. */
static int find(struct trace_sources *s, struct process *p)
{
	struct finding f = { .s = s,
			     .process = p,
			     .memory = { .pid = p->pid } };
	unsigned char byte;
	int nr = memory_mappings(p->pid, COUNTERS_NAME, find_one, &f);

	if (nr < 0)
		return nr;
	if (f.nr)
		return 0;
	return memory_read(&f.memory, 0, &byte, 1) == -EPERM ? -EPERM : 1;
}

static struct process *add_process(struct trace_sources *s, pid_t pid)
{
	struct process *grown =
		reallocarray(s->process, s->nr_processes + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	s->process = grown;
	grown[s->nr_processes] = (struct process){ .pid = pid,
						   .start = proc_start(pid),
						   .tids = tids_new(pid) };
	return &grown[s->nr_processes++];
}

static struct process *process_of(struct trace_sources *s, pid_t pid)
{
	for (unsigned int i = 0; i < s->nr_processes; i++)
		if (s->process[i].pid == pid)
			return &s->process[i];
	return NULL;
}

int trace_sources_attach(struct trace_sources *s, pid_t pid)
{
	struct process *p;

	if (process_of(s, pid))
		return 0;
	if (!proc_start(pid))
		return -ESRCH;
	p = add_process(s, pid);
	return p ? find(s, p) : -ENOMEM;
}

/* Children of those that are attached to. */
static void find_children(struct trace_sources *s)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		struct process *p;

		if (pid <= 0 || process_of(s, pid) ||
		    !process_of(s, proc_parent(pid)))
			continue;
		p = add_process(s, pid);
		if (p)
			p->child = true;
	}
	if (proc)
		closedir(proc);
}

/* The file ----------------------------------------------------------------------------- */

static int make_file(struct trace_sources *s)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN) + 1;
	uint32_t nr_rings = online < 2 ? 2 :
			    online > FLEXSC_TRACE_MAX_RINGS ?
					 FLEXSC_TRACE_MAX_RINGS :
					 (uint32_t)online;
	uint64_t size =
		BEFORE_RINGS + HEAD + (uint64_t)nr_rings * FLEXSC_TRACE_RING;

	s->fd = memfd_create(FLEXSC_TRACE_FILE_NAME + strlen("/memfd:"),
			     MFD_CLOEXEC);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)(size * (MAX_SLOTS + 1))) < 0)
		return -errno;
	s->file =
		mmap(NULL, HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->file == MAP_FAILED) {
		s->file = NULL;
		return -errno;
	}
	s->file->magic = FLEXSC_TRACE_MAGIC;
	s->file->version = FLEXSC_TRACE_VERSION;
	s->file->nr_slots = MAX_SLOTS;
	s->file->slot_size = size;
	s->file->nr_rings = nr_rings;
	s->file->first.bytes = s->wish.bytes;
	s->file->first.follow = s->wish.follow;
	s->file->first.trace_until_ms = !s->wish.count;
	s->file->first.latency_until_ms = s->wish.count;
	memcpy(s->file->first.calls, s->wish.calls, sizeof(s->wish.calls));
	return 0;
}

int trace_sources_offer(struct trace_sources *s, char variable[64])
{
	int bad = make_file(s);

	if (!bad)
		snprintf(variable, 64, "/proc/%d/fd/%d", (int)getpid(), s->fd);
	return bad;
}

void trace_sources_share(struct trace_sources *s)
{
	if (make_file(s))
		return;
	s->offer[0] = (uint32_t)getpid();
	s->offer[1] = (uint32_t)s->fd;
}

void trace_sources_mine(struct trace_sources *s)
{
	if (!s->wish.follow)
		s->file->pid = (uint32_t)getpid();
}

void trace_sources_started(struct trace_sources *s, pid_t pid)
{
	s->started = pid;
}

/* Who has taken a slot since the last time. */
static void find_slots(struct trace_sources *s)
{
	uint32_t taken = is_started(s) ? __atomic_load_n(&s->file->next,
							 __ATOMIC_ACQUIRE) :
					 0;

	for (; s->slots < taken && s->slots < MAX_SLOTS; s->slots++) {
		char *slot = mmap(NULL, slot_size(s), PROT_READ | PROT_WRITE,
				  MAP_SHARED, s->fd,
				  (off_t)(slot_size(s) * (s->slots + 1)));
		const struct flexsc_trace *t = (void *)slot;
		struct source *new;

		if (slot == MAP_FAILED)
			return;
		/* It is about to be written: the next time. */
		if (__atomic_load_n(&t->magic, __ATOMIC_ACQUIRE) !=
		    FLEXSC_TRACE_MAGIC) {
			munmap(slot, slot_size(s));
			return;
		}
		new = add_source(s, 0, t->self, slot);
		if (!new)
			continue;
		new->pid = (pid_t)t->pid;
		/* In a namespace of its own it has another number here. */
		if ((!t->pid_namespace ||
		     t->pid_namespace != s->pid_namespace) &&
		    !is_still_there(new, t) && new->pid != s->started)
			new->pid = 0;
		new->start = new->pid ? proc_start(new->pid) : 0;
		if (new->pid && !process_of(s, new->pid))
			add_process(s, new->pid);
	}
}

/* Reading ------------------------------------------------------------------------------ */

static void see_records(struct trace_sources *s, struct source *from,
			struct ring *r, size_t size, trace_see *see, void *arg)
{
	struct process *p = process_of(s, from->pid);
	const char *at = s->buffer, *end = s->buffer + size;

	while (at + 8 <= end) {
		const struct flexsc_trace_record *record = (const void *)at;
		pid_t tid;

		if (record->size < 8 || record->size % 8 ||
		    record->size > (size_t)(end - at))
			break; /* given back meanwhile */
		at += record->size;
		if (record->kind == FLEXSC_TRACE_SKIP ||
		    record->size < sizeof(*record))
			continue;
		if (r->begun && record->number > r->number)
			from->lost += record->number - r->number;
		r->begun = true;
		r->number = record->number + 1;
		tid = p && p->tids ? tids_here(p->tids, record->tid) : 0;
		see(record, from->pid, tid ? tid : record->tid, arg);
	}
}

/* From the ring's position on; the buffer has them in one piece. */
static int copy_ring(struct trace_sources *s, const struct source *from,
		     const struct flexsc_trace_ring *ring, uint64_t at)
{
	size_t size = (size_t)(ring->end - at);
	size_t offset = at % FLEXSC_TRACE_RING;
	size_t first = FLEXSC_TRACE_RING - offset;
	int bad;

	if (first > size)
		first = size;
	bad = get(from, ring->data + offset, s->buffer, first);
	if (!bad && size > first)
		bad = get(from, ring->data, s->buffer + first, size - first);
	return bad;
}

static void read_ring(struct trace_sources *s, struct source *from,
		      unsigned int i, struct flexsc_trace_ring *ring,
		      trace_see *see, void *arg)
{
	struct ring *r = &from->ring[i];
	uint64_t oldest, at = r->at,
			 ring_at = from->trace.rings + i * sizeof(*ring);

	if (ring->end <= at)
		return;
	/* What was written over by now begins a block. */
	if (ring->end - at > FLEXSC_TRACE_RING)
		at = (ring->end - FLEXSC_TRACE_RING + FLEXSC_TRACE_BLOCK - 1) &
		     ~(uint64_t)(FLEXSC_TRACE_BLOCK - 1);
	if (copy_ring(s, from, ring, at))
		return;
	r->at = ring->end;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (get(from, ring_at, ring, sizeof(*ring)))
		return;
	oldest = flexsc_trace_oldest(ring->reserved, FLEXSC_TRACE_RING);
	if (at < oldest) {
		uint64_t from_block = (oldest + FLEXSC_TRACE_BLOCK - 1) &
				      ~(uint64_t)(FLEXSC_TRACE_BLOCK - 1);

		if (from_block >= r->at)
			return;
		memmove(s->buffer, s->buffer + (from_block - at),
			(size_t)(r->at - from_block));
		at = from_block;
	}
	see_records(s, from, r, (size_t)(r->at - at), see, arg);
}

static void unmap(struct source *source)
{
	if (source->map)
		munmap(source->map, source->map_size);
	source->map = NULL;
	source->rings_slot = 0;
}

/* Its rings are in our file now, or no longer: they begin there. */
static void map_rings(const struct trace_sources *s, struct source *from)
{
	const struct flexsc_trace *t = &from->trace;
	bool ours = t->slot && t->slot <= MAX_SLOTS && s->offer[0] &&
		    t->slot_pid == s->offer[0] && t->slot_fd == s->offer[1];
	uint32_t slot = ours ? t->slot : 0;
	off_t at = (off_t)(slot_size(s) * slot + BEFORE_RINGS);

	if (from->slot || slot == from->rings_slot)
		return;
	unmap(from);
	if (!from->looked)
		from->dropped = t->dropped;
	for (unsigned int i = 0; i < FLEXSC_TRACE_MAX_RINGS; i++)
		from->ring[i].at = 0; /* numbers go on */
	if (!slot)
		return;
	from->skips = false;
	from->map_size = slot_size(s) - BEFORE_RINGS;
	from->map =
		mmap(NULL, from->map_size, PROT_READ, MAP_SHARED, s->fd, at);
	if (from->map == MAP_FAILED)
		from->map = NULL;
	from->mapped = t->rings;
	from->rings_slot = slot;
}

/* What the process says of itself; when it is gone, what it said last. */
static bool renew(struct trace_sources *s, struct source *from)
{
	struct flexsc_trace t;

	if (get(from, from->address, &t, sizeof(t)) ||
	    !is_trace(&t, from->address)) {
		from->ended = true;
		return from->rings_slot;
	}
	from->trace = t;
	if (s->file)
		map_rings(s, from);
	return true;
}

void trace_sources_counts(struct trace_sources *s,
			  struct trace_count count[FLEXSC_TRACE_CALLS])
{
	memcpy(count, s->count, FLEXSC_TRACE_CALLS * sizeof(*count));
	for (unsigned int i = 0; i < s->nr_sources; i++) {
		read_counts(&s->source[i]);
		trace_count_add(count, s->source[i].before, s->source[i].now);
	}
}

static void read_source(struct trace_sources *s, struct source *from,
			trace_see *see, void *arg)
{
	struct flexsc_trace_ring ring[FLEXSC_TRACE_MAX_RINGS];
	unsigned int nr;

	if (!renew(s, from))
		return;
	if (s->wish.count) {
		/* What is in our file does not go away. */
		if (!from->slot)
			read_counts(from);
		return;
	}
	nr = from->trace.nr_rings;
	if (!from->trace.rings || nr > FLEXSC_TRACE_MAX_RINGS)
		return;
	if (get(from, from->trace.rings, ring, nr * sizeof(*ring)))
		return;
	for (unsigned int i = 0; i < nr; i++) {
		if (from->skips)
			from->ring[i].at = ring[i].end;
		read_ring(s, from, i, &ring[i], see, arg);
	}
	from->skips = false;
	from->looked = true;
}

/* One whose process is not known here lives as long as we do. */
static bool source_lives(const struct source *source)
{
	return !source->pid ||
	       (source->start && proc_start(source->pid) == source->start);
}

static uint64_t lost_of(const struct source *source)
{
	return source->lost + source->trace.dropped - source->dropped;
}

/* A slot of a process that is gone is read to its end, and freed. */
static void retire(struct trace_sources *s, unsigned int i)
{
	struct source *old = &s->source[i];

	s->lost_before += lost_of(old);
	s->lapses_before += old->trace.lapses - old->lapses;
	if (s->wish.count) {
		read_counts(old);
		trace_count_add(s->count, old->before, old->now);
	}
	free(old->before);
	free(old->now);
	/* Not while somebody writes there, though nobody will read it. */
	if (old->slot && !source_lives(old))
		madvise(old->slot, slot_size(s), MADV_REMOVE);
	unmap(old);
	s->source[i] = s->source[--s->nr_sources];
}

static void look_around(struct trace_sources *s)
{
	if (!is_started(s) && s->wish.follow)
		find_children(s);
	for (unsigned int i = 0; i < s->nr_processes; i++) {
		tids_renew(s->process[i].tids);
		if (!is_started(s) || s->process[i].child)
			find(s, &s->process[i]);
	}
	for (unsigned int i = 0; i < s->nr_sources; i++)
		ask(s, &s->source[i]);
}

unsigned int trace_sources_read(struct trace_sources *s, trace_see *see,
				trace_gone *gone, void *arg)
{
	unsigned int alive = 0, left = 0;
	uint32_t now = now_ms() | 1;

	find_slots(s);
	if (!s->asked_ms || now - s->asked_ms >= ASK_EVERY_MS) {
		s->asked_ms = now;
		look_around(s);
	}
	for (unsigned int i = 0; i < s->nr_sources;) {
		bool lived = source_lives(&s->source[i]);

		read_source(s, &s->source[i], see, arg);
		if (lived && !s->source[i].ended)
			i++;
		else
			retire(s, i);
	}
	for (unsigned int i = 0; i < s->nr_processes; i++) {
		struct process *p = &s->process[i];
		int status = TRACE_UNKNOWN_END;

		if (p->start && proc_start(p->pid) == p->start &&
		    !proc_ended(p->pid, &status)) {
			s->process[left++] = *p;
			alive++;
			continue;
		}
		gone(p->pid, status, arg);
		tids_free(p->tids);
	}
	s->nr_processes = left;
	return alive;
}

/* The rest ------------------------------------------------------------------------------- */

struct trace_sources *trace_sources_new(const struct trace_wish *wish)
{
	struct trace_sources *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	if (stat("/proc/self/ns/pid", &st) == 0)
		s->pid_namespace = (uint32_t)st.st_ino;
	s->wish = *wish;
	s->fd = -1;
	s->buffer = malloc(FLEXSC_TRACE_RING);
	s->count = calloc(FLEXSC_TRACE_CALLS, sizeof(*s->count));
	if (!s->buffer || !s->count) {
		free(s->buffer);
		free(s->count);
		free(s);
		return NULL;
	}
	return s;
}

void trace_sources_free(struct trace_sources *s)
{
	while (s->nr_sources)
		retire(s, 0);
	for (unsigned int i = 0; i < s->nr_processes; i++)
		tids_free(s->process[i].tids);
	if (s->file)
		munmap(s->file, HEAD);
	if (s->fd >= 0)
		close(s->fd);
	free(s->source);
	free(s->process);
	free(s->buffer);
	free(s->count);
	free(s);
}

uint64_t trace_sources_lost(struct trace_sources *s)
{
	uint64_t lost = s->lost_before;

	for (unsigned int i = 0; i < s->nr_sources; i++)
		lost += lost_of(&s->source[i]);
	return lost;
}

uint64_t trace_sources_lapses(struct trace_sources *s)
{
	uint64_t lapses = s->lapses_before;

	for (unsigned int i = 0; i < s->nr_sources; i++)
		lapses += s->source[i].trace.lapses - s->source[i].lapses;
	return lapses;
}

bool trace_sources_any(const struct trace_sources *s)
{
	return s->nr_sources || s->slots;
}

/* SPDX-License-Identifier: MIT */
/*
 * Memory and time limits of recording; see page/trace.h. Addresses that the
 * application gives may be bad: the kernel reads them for us. Everything is by
 * the kernel's own calls, since it happens in the middle of the application's.
 */
#include "page/trace.h"

#include "arch/fd.h"
#include "base/clock.h"
#include "base/futex.h"
#include "page/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	SMALL_PAGE = 4096,
	LATENCIES = FLEXSC_TRACE_CALLS * sizeof(struct flexsc_trace_latency),
};

struct fx_trace_wanted fx_trace_wanted;

/* Until an observer has a file for it. */
static struct flexsc_trace own __attribute__((aligned(64)));
static struct flexsc_trace *trace = &own;
static uint32_t making; /* rings or latencies, by one thread */
static struct fx_lock starting;
static char offered[64]; /* the file, where its observer has it */

static size_t rings_size(uint32_t nr_rings)
{
	return SMALL_PAGE + (size_t)nr_rings * FLEXSC_TRACE_RING;
}

/* How what begins at @rings is divided, as far as it could go. */
static void divide(struct flexsc_trace_ring ring[FLEXSC_TRACE_MAX_RINGS],
		   uintptr_t rings)
{
	for (uint32_t i = 0; i < FLEXSC_TRACE_MAX_RINGS; i++)
		ring[i].data =
			rings + SMALL_PAGE + (uint64_t)i * FLEXSC_TRACE_RING;
}

static void show_rings(struct flexsc_trace *t, uintptr_t rings,
		       uint32_t nr_rings)
{
	t->nr_rings = nr_rings;
	fx_store_release(&t->rings, (uint64_t)rings);
}

/* One for each processor, and one more. */
static uint32_t wanted_rings(void)
{
	uint64_t mask[16] = { 0 };
	uint32_t nr = 1;

	fx_arch_syscall(SYS_sched_getaffinity, 0, sizeof(mask), (long)mask, 0,
			0, 0);
	for (unsigned i = 0; i < FX_ARRAY_SIZE(mask); i++)
		nr += (uint32_t)__builtin_popcountll(mask[i]);
	return nr < 2			   ? 2 :
	       nr > FLEXSC_TRACE_MAX_RINGS ? FLEXSC_TRACE_MAX_RINGS :
					     nr;
}

static void *map_private(size_t size)
{
	long at = fx_arch_syscall(SYS_mmap, 0, (long)size,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  -1, 0);

	return fx_is_error(at) ? NULL : (void *)at;
}

static struct flexsc_trace_latency *latencies(struct flexsc_trace *t)
{
	uint64_t at = fx_load_acquire(&t->latencies);
	uint32_t before = 0;

	if (fx_likely(at) || !fx_cas(&making, &before, 1u))
		return (void *)(uintptr_t)at;
	if (!t->latencies)
		fx_store_release(&t->latencies,
				 (uint64_t)(uintptr_t)map_private(LATENCIES));
	fx_store_release(&making, 0u);
	return (void *)(uintptr_t)t->latencies;
}

/* An observer's file --------------------------------------------------------- */

static void show(struct flexsc_trace *t)
{
	t->version = FLEXSC_TRACE_VERSION;
	t->size = sizeof(*t);
	t->pid = (uint32_t)fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	t->self = (uintptr_t)t;
	t->wanted = (uintptr_t)&fx_trace_wanted.wanted;
	if (t->bytes < 32)
		t->bytes = 32;
	fx_store_release(&t->magic, (uint32_t)FLEXSC_TRACE_MAGIC);
}

static void unmap(void *at, size_t size)
{
	fx_arch_syscall(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0);
}

static char *map_part(int fd, uint64_t at, size_t size)
{
	long map = fx_arch_syscall(SYS_mmap, 0, (long)size,
				   PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				   (long)at);

	return fx_is_error(map) ? NULL : (char *)map;
}

/* By what a program that could be executed may do: prctl(2) may be forbidden. */
static bool is_filtered(void)
{
	char text[4096], *line;
	long nr = 0, fd;

	fd = fx_arch_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/status",
			     O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return true;
	nr = fx_arch_syscall(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0,
			     0);
	fx_close((int)fd);
	text[nr > 0 ? nr : 0] = '\0';
	line = strstr(text, "\nSeccomp:\t");
	return line && line[10] != '0';
}

/* What was asked for is, for as long as an observer asks at a time. */
static void go_on(struct flexsc_trace *t, uint32_t now_ms)
{
	uint32_t until = (now_ms + FLEXSC_TRACE_LEASE_MS) | 1;

	if (fx_load_relaxed(&t->trace_until_ms))
		fx_store_relaxed(&t->trace_until_ms, until);
	if (fx_load_relaxed(&t->latency_until_ms))
		fx_store_relaxed(&t->latency_until_ms, until);
}

static uint32_t pid_namespace(void)
{
	struct stat st;

	return fx_arch_syscall(SYS_newfstatat, AT_FDCWD,
			       (long)"/proc/self/ns/pid", (long)&st, 0, 0, 0) ?
		       0 :
		       (uint32_t)st.st_ino;
}

/* Return: where the next slot of it begins; 0: there is none for us. */
static uint64_t next_slot(struct flexsc_trace_file *file)
{
	uint32_t slot, nr_rings = file->nr_rings;

	if (file->magic != FLEXSC_TRACE_MAGIC ||
	    file->version != FLEXSC_TRACE_VERSION || !nr_rings ||
	    nr_rings > FLEXSC_TRACE_MAX_RINGS ||
	    file->slot_size < SMALL_PAGE + LATENCIES + rings_size(nr_rings) ||
	    (file->pid && file->pid != (uint32_t)getpid()))
		return 0;
	slot = fx_fetch_add(&file->next, 1u);
	return slot < file->nr_slots ? file->slot_size * (slot + 1) : 0;
}

static void take_slot(int fd, struct flexsc_trace_file *file, const char *path)
{
	uint32_t nr_rings = file->nr_rings;
	uint64_t at = next_slot(file);
	struct flexsc_trace *t;
	char *map, *rings;

	map = at ? map_part(fd, at,
			    SMALL_PAGE + LATENCIES + rings_size(nr_rings)) :
		   NULL;
	if (!map)
		return;
	t = (struct flexsc_trace *)map;
	memcpy(offered, path, strlen(path) + 1);
	*t = file->first;
	t->filtered = is_filtered();
	t->pid_namespace = pid_namespace();
	t->latencies = (uintptr_t)map + SMALL_PAGE;
	go_on(t, fx_now_ms_coarse());
	rings = map + SMALL_PAGE + LATENCIES;
	divide((void *)rings, (uintptr_t)rings);
	show_rings(t, (uintptr_t)rings, nr_rings);
	show(t);
	fx_store_release(&trace, t);
	fx_store_release(&fx_trace_wanted.wanted, 1u);
}

/* Nothing else is opened, whatever the environment says. */
static bool is_file(const char *path)
{
	char to[64];
	long nr = fx_arch_syscall(SYS_readlink, (long)path, (long)to,
				  sizeof(to), 0, 0, 0);
	size_t length = strlen(FLEXSC_TRACE_FILE_NAME);

	return nr >= (long)length &&
	       memcmp(to, FLEXSC_TRACE_FILE_NAME, length) == 0;
}

typedef void use_file(int fd, struct flexsc_trace_file *file, const char *path);

static void with_file(const char *path, use_file *use)
{
	struct flexsc_trace_file *file;
	int fd;

	if (strlen(path) >= sizeof(offered) || !is_file(path))
		return;
	fd = (int)fx_arch_syscall(SYS_openat, AT_FDCWD, (long)path,
				  O_RDWR | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return;
	file = (struct flexsc_trace_file *)map_part(fd, 0, SMALL_PAGE);
	if (file) {
		use(fd, file, path);
		unmap(file, SMALL_PAGE);
	}
	fx_close(fd);
}

/* Rings of a process that was there before the observer ----------------------- */

/*
 * Where they are in @own: always there, in our memory or, over that, in the file
 * of whoever has observed us last. The heads are those of as many as could be,
 * so who has counted before a change writes to memory all the same.
 */
static uintptr_t rings_place;

static bool has_place(void)
{
	if (!rings_place)
		rings_place = (uintptr_t)map_private(
			rings_size(FLEXSC_TRACE_MAX_RINGS));
	return rings_place;
}

static void release(struct flexsc_trace_ring *ring, uint32_t nr)
{
	while (nr)
		fx_record_release(&ring[--nr]);
}

/* Return: nobody is writing, nor begins to. */
static bool claim_all(struct flexsc_trace_ring *ring)
{
	uint32_t nr = 0;

	while (nr < FLEXSC_TRACE_MAX_RINGS && fx_record_claim(&ring[nr]))
		nr++;
	if (nr < FLEXSC_TRACE_MAX_RINGS)
		release(ring, nr);
	return nr == FLEXSC_TRACE_MAX_RINGS;
}

/* Each is tried once: it may be forbidden, or not what it is called. */
static uint64_t tried;

static uint64_t offer_of(const struct flexsc_trace *t)
{
	return (uint64_t)fx_load_relaxed(&t->offer_pid) << 32 |
	       fx_load_relaxed(&t->offer_fd);
}

/* Who looks there from now on finds nothing yet. */
static void show_slot(uint32_t slot, uint64_t offer)
{
	own.slot_pid = (uint32_t)(offer >> 32);
	own.slot_fd = (uint32_t)offer;
	fx_store_release(&own.slot, slot);
}

static bool moved;

/* All locks are held; those that are there then, if @moved, are not. */
static void put_rings(int fd, struct flexsc_trace_file *file, const char *path)
{
	struct flexsc_trace_ring heads[FLEXSC_TRACE_MAX_RINGS] = { 0 };
	const struct flexsc_trace_ring *ring = (void *)rings_place;
	uint64_t slot = next_slot(file), at = slot + SMALL_PAGE + LATENCIES;
	uint32_t nr_rings = file->nr_rings;

	divide(heads, rings_place);
	/* What of theirs was not read is noticed by the numbers that follow. */
	for (uint32_t i = 0; i < FLEXSC_TRACE_MAX_RINGS; i++)
		heads[i].nr = ring[i].nr;
	if (!slot ||
	    fx_arch_syscall(SYS_pwrite64, fd, (long)heads, sizeof(heads),
			    (long)at, 0, 0) != sizeof(heads))
		return;
	show_slot((uint32_t)(slot / file->slot_size), offer_of(&own));
	if (fx_is_error(fx_arch_syscall(
		    SYS_mmap, (long)rings_place, (long)rings_size(nr_rings),
		    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		    (long)at))) {
		show_slot(0, 0);
		return;
	}
	moved = true;
	memcpy(offered, path, strlen(path) + 1);
	show_rings(&own, rings_place, nr_rings);
}

static char *put_number(char *at, uint32_t number)
{
	if (number >= 10)
		at = put_number(at, number / 10);
	*at++ = (char)('0' + number % 10);
	return at;
}

static void take_offer(uint64_t offer)
{
	struct flexsc_trace_ring *ring = (void *)rings_place;
	char path[64] = "/proc/", *at = path + strlen(path);

	at = put_number(at, (uint32_t)(offer >> 32));
	memcpy(at, "/fd/", 4);
	*put_number(at + 4, (uint32_t)offer) = '\0';
	moved = false;
	with_file(path, put_rings);
	if (!moved)
		release(ring, FLEXSC_TRACE_MAX_RINGS);
}

/* Under `making`. */
static void make_rings(struct flexsc_trace *t)
{
	uint64_t offer;

	if (t != &own || !has_place())
		return;
	if (!t->rings)
		divide((void *)rings_place, rings_place);
	offer = offer_of(t);
	if (offer == tried || fx_load_relaxed(&t->filtered)) {
		fx_store_relaxed(&tried, offer);
	} else if (claim_all((void *)rings_place)) {
		take_offer(offer);
		fx_store_relaxed(&tried, offer);
	}
	if (!t->rings)
		show_rings(t, rings_place, wanted_rings());
}

/* The first one makes them; who comes meanwhile goes without. */
static bool has_rings(struct flexsc_trace *t)
{
	uint32_t before = 0;

	if (fx_likely(fx_load_acquire(&t->rings)) &&
	    fx_likely(offer_of(t) == fx_load_relaxed(&tried)))
		return true;
	if (!fx_cas(&making, &before, 1u))
		return t->rings;
	make_rings(t);
	fx_store_release(&making, 0u);
	return t->rings;
}

struct flexsc_trace *fx_trace_start(void)
{
	const char *path;
	int saved = errno;

	if (fx_load_acquire(&trace->magic))
		return trace;
	fx_lock(&starting);
	path = secure_getenv("FLEXSC_TRACE");
	if (!trace->magic && path && *path)
		with_file(path, take_slot);
	if (!trace->magic)
		show(trace);
	fx_unlock(&starting);
	errno = saved;
	return trace;
}

/*
 * The parent's file is not the child's, its rings are no more than copies. Until
 * an observer finds the child it records for as long as the parent had to.
 */
void fx_trace_after_fork(void)
{
	struct flexsc_trace *before = trace, asked = *before;
	bool follow = fx_watched() && before->follow;

	fx_store_relaxed(&fx_trace_wanted.wanted, 0u);
	making = 0;
	starting.word = 0;
	if (!before->magic)
		return;
	/* They may be in the file of the parent's observer. */
	if (rings_place)
		unmap((void *)rings_place, rings_size(FLEXSC_TRACE_MAX_RINGS));
	rings_place = 0;
	tried = 0;
	*offered = '\0';
	trace = &own;
	memset(&own, 0, sizeof(own));
	if (!follow)
		return;
	memcpy(own.calls, asked.calls, sizeof(own.calls));
	own.bytes = asked.bytes;
	own.follow = asked.follow;
	own.offer_pid = asked.offer_pid;
	own.offer_fd = asked.offer_fd;
	own.filtered = asked.filtered;
	own.trace_until_ms = asked.trace_until_ms;
	own.latency_until_ms = asked.latency_until_ms;
	fx_trace_start();
	fx_store_release(&fx_trace_wanted.wanted, 1u);
}

/* What is wanted ------------------------------------------------------------- */

/* Memory that nobody looks at goes back; numbers and positions stay. */
static void give_back(struct flexsc_trace *t)
{
	struct flexsc_trace_ring *ring = (void *)(uintptr_t)t->rings;
	int advice = t == &own && !t->slot ? MADV_DONTNEED : MADV_REMOVE;

	for (uint32_t i = 0; ring && i < t->nr_rings; i++) {
		if (!fx_record_claim(&ring[i]))
			continue;
		fx_arch_syscall(SYS_madvise, (long)ring[i].data,
				FLEXSC_TRACE_RING, advice, 0, 0, 0);
		fx_record_release(&ring[i]);
	}
}

/*
 * Who has started this program for its records has not asked for long, but has
 * the file open: it waits for a processor, or is stopped.
 */
static bool is_waited_for(const struct flexsc_trace *t)
{
	return *offered && !fx_load_relaxed(&t->filtered) && is_file(offered);
}

static unsigned wants_now(const struct flexsc_trace *t, uint32_t now_ms)
{
	unsigned wants = 0;

	if (fx_record_until(&t->trace_until_ms, now_ms))
		wants |= FX_WANT_RECORDS;
	if (fx_record_until(&t->latency_until_ms, now_ms))
		wants |= FX_WANT_LATENCY;
	return wants;
}

unsigned fx_trace_wants(unsigned nr, uint64_t now_ns)
{
	struct flexsc_trace *t = trace;
	uint32_t now_ms = (uint32_t)(now_ns / FX_NS_PER_MS);
	unsigned wants = wants_now(t, now_ms);

	if (!wants && is_waited_for(t)) {
		go_on(t, now_ms);
		wants = wants_now(t, now_ms);
	}
	if (!wants) {
		if (fx_record_lapse(&fx_trace_wanted.wanted, t, now_ms)) {
			fx_fetch_add(&t->lapses, 1u);
			give_back(t);
		}
		return 0;
	}
	if (nr == FX_NO_CALL)
		return wants;
	if (nr > FX_NO_CALL)
		return 0;
	if (!(fx_load_relaxed(&t->calls[nr / 64]) >> nr % 64 & 1))
		wants &= ~(unsigned)FX_WANT_RECORDS;
	return wants;
}

uint32_t fx_trace_bytes(void)
{
	uint32_t bytes = fx_load_relaxed(&trace->bytes);

	return bytes > FLEXSC_TRACE_MAX_BYTES ? FLEXSC_TRACE_MAX_BYTES : bytes;
}

void fx_trace_filtered(void)
{
	fx_store_relaxed(&trace->filtered, 1u);
}

uint32_t fx_trace_lapses(void)
{
	return fx_load_relaxed(&trace->lapses);
}

static unsigned bucket(uint64_t ns)
{
	unsigned bits = ns ? 64 - (unsigned)__builtin_clzll(ns) : 0;

	bits = bits > 7 ? bits - 7 : 0;
	return bits < FLEXSC_TRACE_BUCKETS ? bits : FLEXSC_TRACE_BUCKETS - 1;
}

void fx_trace_latency(unsigned nr, uint64_t ns, bool failed)
{
	struct flexsc_trace_latency *all = latencies(trace), *l;
	uint64_t most;

	if (!all || nr >= FLEXSC_TRACE_CALLS)
		return;
	l = &all[nr];
	fx_fetch_add(&l->nr, 1u);
	fx_fetch_add(&l->ns, ns);
	if (failed)
		fx_fetch_add(&l->errors, 1u);
	fx_fetch_add(&l->bucket[bucket(ns)], 1u);
	most = fx_load_relaxed(&l->most_ns);
	while (ns > most && !fx_cas(&l->most_ns, &most, ns))
		;
}

bool fx_trace_times(void)
{
	return fx_load_relaxed(&trace->latency_until_ms);
}

/* A record ------------------------------------------------------------------- */

/*
 * A handler that does not return, or cancelation, must not keep a lock; on a
 * carrier everything is blocked already.
 */
static uint64_t block_signals(void)
{
	uint64_t all = UINT64_MAX, before = 0;

	fx_arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all,
			(long)&before, sizeof(all), 0, 0);
	return before;
}

static void restore_signals(uint64_t before)
{
	fx_arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0,
			sizeof(before), 0, 0);
}

static struct flexsc_trace_ring *claim(struct flexsc_trace *t)
{
	struct flexsc_trace_ring *rings = (void *)(uintptr_t)t->rings;
	uint32_t nr = t->nr_rings,
		 first = nr ? (uint32_t)sched_getcpu() % nr : 0;

	for (uint32_t i = 0; i < nr; i++)
		if (fx_record_claim(&rings[(first + i) % nr]))
			return &rings[(first + i) % nr];
	return NULL;
}

static char *place(const struct flexsc_trace_ring *ring, uint64_t at)
{
	return (char *)(uintptr_t)ring->data + at % FLEXSC_TRACE_RING;
}

bool fx_record_new(struct fx_record *record)
{
	struct flexsc_trace *t = trace;
	struct flexsc_trace_record *skipped;
	uint64_t skip;

	record->signals = block_signals();
	record->ring = has_rings(t) ? claim(t) : NULL;
	if (!record->ring) {
		fx_fetch_add(&t->dropped, 1u);
		restore_signals(record->signals);
		return false;
	}
	record->at = fx_record_begin(record->ring, FLEXSC_TRACE_MAX_RECORD,
				     FLEXSC_TRACE_BLOCK, &skip);
	if (skip) {
		skipped = (void *)place(record->ring, record->at - skip);
		skipped->size = (uint32_t)skip;
		skipped->kind = FLEXSC_TRACE_SKIP;
	}
	record->head = (void *)place(record->ring, record->at);
	*record->head =
		(struct flexsc_trace_record){ .number = record->ring->nr };
	record->size = sizeof(*record->head);
	return true;
}

void fx_record_close(struct fx_record *record)
{
	record->head->size = record->size;
	fx_record_end(record->ring, record->at, record->size);
	fx_record_release(record->ring);
	restore_signals(record->signals);
}

/* Page by page: what is on one that is not there does not spoil the others. */
static size_t copy(char *to, uint64_t address, size_t size)
{
	struct iovec here = { to, size }, there[3];
	unsigned nr = 0;
	long got;

	for (size_t done = 0; done < size && nr < 3; nr++) {
		size_t part = SMALL_PAGE - (address + done) % SMALL_PAGE;

		if (part > size - done)
			part = size - done;
		there[nr].iov_base = (void *)(uintptr_t)(address + done);
		there[nr].iov_len = part;
		done += part;
	}
	got = fx_arch_syscall(SYS_process_vm_readv, trace->pid, (long)&here, 1,
			      (long)there, nr, 0);
	return got > 0 ? (size_t)got : 0;
}

const void *fx_record_part(struct fx_record *record, unsigned argument,
			   uint64_t address, size_t *size)
{
	struct flexsc_trace_part *part =
		(void *)((char *)record->head + record->size);
	size_t room = FLEXSC_TRACE_MAX_RECORD - record->size;

	if (!address || !*size || room < sizeof(*part) + 8 ||
	    fx_load_relaxed(&trace->filtered))
		return NULL;
	room -= sizeof(*part);
	if (*size > (room & ~(size_t)7))
		*size = room & ~(size_t)7;
	if (*size > FLEXSC_TRACE_MAX_BYTES)
		*size = FLEXSC_TRACE_MAX_BYTES;
	*size = copy((char *)(part + 1), address, *size);
	if (!*size)
		return NULL;
	*part = (struct flexsc_trace_part){ address, (uint32_t)*size,
					    argument };
	record->size += (uint32_t)(sizeof(*part) + ((*size + 7) & ~(size_t)7));
	return part + 1;
}

void fx_record_trim(struct fx_record *record, const void *part, size_t size)
{
	struct flexsc_trace_part *p = (struct flexsc_trace_part *)part - 1;

	p->size = (uint32_t)size;
	record->size = (uint32_t)((char *)(p + 1) - (char *)record->head +
				  ((size + 7) & ~(size_t)7));
}

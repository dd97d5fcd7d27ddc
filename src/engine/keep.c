/* SPDX-License-Identifier: MIT */
/*
 * Calls that keep their files: holds on descriptors, and moving what is parked
 * to another descriptor of the same file. Why, and when: engine/hold.h.
 */
#include "engine/parkq.h"

#include "arch/arch.h"

#include <errno.h>
#include <sys/epoll.h>

void fx_park_hold(struct fx_park *park, uint32_t index)
{
	const struct flexsc_entry *call = fx_set_entry(park->set, index);
	const struct fx_call_desc *desc = &park->table[call->nr];
	struct fx_beside *b = &park->set->beside[index];
	struct fx_fdrec *rec;
	uint64_t *word;
	int fd;

	/* Of a descriptor that is still to come, it is held in its turn. */
	if (!park->keeps || b->held || desc->fd_arg < 0 ||
	    desc->flags & FX_CALL_CLOSES ||
	    call->flags & FLEXSC_F_ARG(desc->fd_arg))
		return;
	fd = (int)call->args[desc->fd_arg];
	fx_park_lock(park);
	rec = fx_park_record(park, fd, true);
	word = fx_hold_word(fd);
	if (rec && fx_hold_take(word, (uint16_t)fx_hold_epoch(fx_load_relaxed(
					      word))) == FX_HOLD_TAKEN) {
		rec->held++;
		b->held = (uint32_t)fd + 1;
	}
	fx_park_unlock(park);
}

static void drop(struct fx_park *park, struct fx_beside *b)
{
	int fd = (int)b->held - 1;

	b->held = 0;
	fx_park_record(park, fd, false)->held--;
	fx_hold_put(fd);
}

void fx_park_drop(struct fx_park *park, uint32_t index)
{
	fx_park_lock(park);
	drop(park, &park->set->beside[index]);
	fx_park_unlock(park);
}

void fx_park_enter(struct fx_park *park, uint32_t index)
{
	struct fx_beside *b = &park->set->beside[index];

	if (!b->held)
		return;
	fx_park_lock(park);
	/* A private one would be closed: it is kept until the call is over. */
	if (!(fx_load_relaxed(fx_hold_word((int)b->held - 1)) &
	      FX_HOLD_PRIVATE))
		drop(park, b);
	fx_park_unlock(park);
}

uint32_t fx_park_nr_held(struct fx_park *park, int fd)
{
	struct fx_fdrec *rec;
	uint32_t nr;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, false);
	nr = rec ? rec->held : 0;
	fx_park_unlock(park);
	return nr;
}

/* Moving -------------------------------------------------------------------- */

/* Under the lock. @onto NULL: it has no file any more. */
static void rehold(struct fx_park *park, uint32_t index, struct fx_fdrec *onto,
		   int to)
{
	struct flexsc_entry *call = fx_set_entry(park->set, index);
	struct fx_beside *b = beside(park, index);
	int fd = (int)b->held - 1;

	call->args[park->table[call->nr].fd_arg] = onto ? (uint64_t)to :
							  UINT64_MAX;
	b->held = 0;
	if (onto) {
		fx_hold_add(fx_hold_word(to));
		onto->held++;
		b->held = (uint32_t)to + 1;
	}
	fx_park_record(park, fd, false)->held--;
	fx_hold_put(fd);
}

/* The first of them that holds its file. */
static uint32_t first_held(struct fx_park *park, const struct fx_fdrec *rec,
			   unsigned dir)
{
	uint32_t i = rec->first[dir];

	while (i && !beside(park, i - 1)->held)
		i = beside(park, i - 1)->next;
	return i;
}

/* A record for a private descriptor. */
static struct fx_fdrec *duplicate(struct fx_park *park,
				  const struct fx_fdrec *rec, int to)
{
	struct fx_fdrec *onto = fx_park_record(park, to, true);

	if (!onto || onto->held)
		return onto;
	fx_park_look(park, onto, to);
	onto->kind = rec->kind;
	onto->flags |= rec->flags & (FX_FD_BLOCKING | FX_FD_DRAINS(3u));
	return onto;
}

static void move_queue(struct fx_park *park, struct fx_fdrec *rec,
		       struct fx_fdrec *onto, unsigned dir, int to)
{
	uint32_t i;

	while ((i = first_held(park, rec, dir))) {
		queue_remove(park, rec, dir, i - 1);
		rehold(park, i - 1, onto, to);
		beside(park, i - 1)->fd = (uint32_t)to;
		queue_append(park, onto, dir, i - 1, false);
	}
	if (onto->first[dir]) { /* what is tried, gets into the set */
		onto->edges[dir]++;
		onto->flags |= FX_FD_READY(dir);
		activate(park, onto, to);
	}
}

uint32_t fx_park_move(struct fx_park *park, int fd, int to)
{
	uint32_t over = FX_NO_ENTRY, i;
	struct fx_fdrec *rec, *onto;

	fx_park_lock(park);
	rec = fx_park_record(park, fd, false);
	if (!rec || !rec->held)
		goto done;
	onto = to < 0 ? NULL : duplicate(park, rec, to);
	for (unsigned dir = FX_IN; dir <= FX_OUT; dir++) {
		if (onto) {
			move_queue(park, rec, onto, dir, to);
		} else if ((i = first_held(park, rec, dir))) {
			struct flexsc_entry *call;

			over = i - 1;
			call = fx_set_entry(park->set, over);
			call->ret = begun(call) ? call->ret : -EBADF;
			unpark(park, rec, dir, over);
			break;
		}
	}
	/* The file stays, and with it what the set knows of this number. */
	if (onto && rec->flags & (FX_FD_SET(FX_IN) | FX_FD_SET(FX_OUT))) {
		fx_arch_syscall(SYS_epoll_ctl, park->epfd, EPOLL_CTL_DEL, fd, 0,
				0, 0);
		fx_park_forget(park, rec, fd, FX_KIND_UNKNOWN, false);
	}
done:
	fx_park_unlock(park);
	return over;
}

void fx_park_move_one(struct fx_park *park, uint32_t index, int to)
{
	fx_park_lock(park);
	rehold(park, index, to < 0 ? NULL : fx_park_record(park, to, true), to);
	fx_park_unlock(park);
}

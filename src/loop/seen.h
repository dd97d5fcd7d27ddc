/* SPDX-License-Identifier: MIT */
/* Posted calls as observers see them; only with fx_watched(). */
#ifndef FX_LOOP_SEEN_H
#define FX_LOOP_SEEN_H

#include "loop/loop.h"

/* When the call of an entry was posted; of no use after a lapse. */
struct fx_loop_began {
	uint64_t ns;
	uint32_t lapses;
};

/* Return: when, for the others. @ev: or NULL, here and below. */
uint64_t fx_loop_seen_begin(struct flexsc_loop *loop,
			    const struct flexsc_event *ev,
			    const struct flexsc_entry *call);
/* It has taken this entry. */
void fx_loop_seen_taken(struct flexsc_loop *loop, uint32_t index,
			uint64_t begun_ns);
/* Its result is known, without an entry. */
void fx_loop_seen_end(struct flexsc_loop *loop, const struct flexsc_event *ev,
		      const struct flexsc_entry *call, uint64_t begun_ns,
		      int64_t ret);
/* It was reaped; its entry is as it was. */
void fx_loop_seen_reaped(struct flexsc_loop *loop,
			 const struct flexsc_event *ev, int64_t ret);
void fx_loop_seen_cancel(struct flexsc_loop *loop,
			 const struct flexsc_event *ev);
void fx_loop_seen_fini(struct flexsc_loop *loop);

#endif /* FX_LOOP_SEEN_H */

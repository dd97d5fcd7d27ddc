/* SPDX-License-Identifier: MIT */
/* One descriptor, as engine/park.c knows it; all fields under its lock. */
#ifndef FX_ENGINE_FDREC_H
#define FX_ENGINE_FDREC_H

#include "base/types.h"

/* Directions, as indices. */
enum { FX_IN = 0, FX_OUT = 1 };

/* fx_fdrec.flags */
#define FX_FD_READY(dir) (1u << (dir)) /* believed ready */
#define FX_FD_SET(dir) (4u << (dir)) /* in the epoll set for it */
#define FX_FD_TRIED(dir) (16u << (dir)) /* READY says something */
#define FX_FD_HUP 64u /* end of file or error: always ready */
#define FX_FD_OURS 128u /* made by a posted call for posted calls */
#define FX_FD_BLOCKING 256u /* seen without O_NONBLOCK */
#define FX_FD_ACTIVE 512u /* on the list of descriptors to retry */
#define FX_FD_EDGE(dir) (1024u << (dir)) /* an edge came since the last try */
#define FX_FD_DRAINS(n) ((n) << 13) /* two bits: enum fx_drains */
#define FX_FD_CLOSED 4096u /* by a posted close: closed_at is valid */

struct fx_fdrec {
	uint32_t first[2], last[2]; /* parked entries + 1, by direction */
	uint32_t generation; /* tells events of an earlier file apart */
	uint32_t checked_ms; /* when the registration was last verified */
	uint32_t credit; /* see struct fx_hint */
	uint32_t next_active; /* descriptor + 1 */
	uint32_t closed_at; /* when that close was posted */
	uint16_t edges[2];
	uint16_t flags;
	uint8_t kind;
};

#define FX_FDREC_CHUNK 1024u
#define FX_FDREC_CHUNKS 4096u /* 4 million descriptors */

#endif /* FX_ENGINE_FDREC_H */

/* SPDX-License-Identifier: MIT */
/*
 * Marks for tools/vm-run --profile, which counts instructions between them.
 * To a processor they are one instruction that does nothing.
 */
#ifndef BENCH_MARK_H
#define BENCH_MARK_H

#define MARK(what) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long " what ::: "memory")

static inline void mark_begin(void)
{
	MARK("0x46580001");
}

static inline void mark_end(void)
{
	MARK("0x46580002");
}

#endif /* BENCH_MARK_H */

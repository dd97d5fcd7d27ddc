// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of calls: what is not in it is not carried out. calls.inc is made
 * from src/call/syscalls.tbl by scripts/gen-syscalls.py --out-kmod and kept in
 * the tree, because a module is built where that script is not. It leaves out
 * what the table refuses, and calls that depend on the calling thread.
 */
#include "fxk.h"

#define IS_STRAIGHT(class, marks)                        \
	((class) == FXK_NEVER || ((class) == FXK_DISK && \
				  !((marks) & (FXK_CLOSES | FXK_LOUD))))
#define CALL(nr, class, nr_args, marks)                          \
	[nr] = FXK_##class | (marks) |                           \
	       ((nr_args) > 3 ? FXK_MANY | FXK_FEW :             \
		(nr_args)     ? FXK_FEW :                        \
				0) |                             \
	       (IS_STRAIGHT(FXK_##class, marks) ? FXK_STRAIGHT : 0)

const u16 fxk_calls[FXK_NR_ROWS] = {
#include "calls.inc"
	CALL(FLEXSC_NR_READY_IN, FD, 2, 0),
	CALL(FLEXSC_NR_READY_OUT, FD, 2, FXK_OUT),
};

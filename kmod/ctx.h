/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A registered page set, from FLEXSC_IOC_REGISTER to the last close of its
 * file. It serves one address space, and for as long as that has it mapped:
 * afterwards it is dead, takes nothing, and waits for its file to be closed.
 */
#ifndef FXK_CTX_H
#define FXK_CTX_H

#include "fxk.h"

extern const struct file_operations fxk_fops;

static inline bool fxk_is_ours(const struct file *file)
{
	return file->f_op == &fxk_fops;
}

/* Nothing is taken any more; threads in WAIT come back. Context: process. */
void fxk_ctx_stop(struct fxk_ctx *ctx);

/*
 * The mapping is gone: stopped, and what no runner holds is dropped, with the
 * files that it kept. Context: process; may be under the mm's lock.
 */
void fxk_ctx_die(struct fxk_ctx *ctx);

/* mmap; map.c */
int fxk_map(struct file *file, struct vm_area_struct *vma);

/*
 * Something completed that the owner does not know of, or became ready.
 * Context: process, no lock held.
 */
void fxk_tell(struct fxk_ctx *ctx);

#endif /* FXK_CTX_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists of buffers: will they fit, and what is left of them. */
#ifndef FXK_SPACE_H
#define FXK_SPACE_H

#include "fxk.h"

struct socket;

/*
 * Is there surely room for all that a writev, sendmsg or sendfile has? The
 * answer may be wrong if the program changes the list meanwhile.
 */
bool fxk_fits_socket(const struct fxk_call *call, struct socket *sock);
bool fxk_fits_pipe(const struct fxk_call *call);

/* Has a writev or sendmsg more than so many bytes? */
bool fxk_more_than(const struct fxk_call *call, s64 bytes);

/* Write what is left of a writev or sendmsg behind call->done; may block. */
s64 fxk_write_rest(const struct fxk_call *call);

#endif /* FXK_SPACE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* How many sets and lent threads a user may have. */
#ifndef FXK_LIMIT_H
#define FXK_LIMIT_H

#include "fxk.h"

struct fxk_user;

/* One more set of the calling thread's user. NULL: too many, or no memory. */
struct fxk_user *fxk_user_get(int *error);
void fxk_user_put(struct fxk_user *user);

/* One more thread in WAIT. Return: false if the user has too many. */
bool fxk_user_add_thread(struct fxk_user *user);
void fxk_user_drop_thread(struct fxk_user *user);

/* Of one set, by module parameter. */
u32 fxk_max_threads(void);
u32 fxk_max_entries(void);

#endif /* FXK_LIMIT_H */

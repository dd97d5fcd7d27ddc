/* SPDX-License-Identifier: MIT */
/*
 * Copies of the whole modelled machine, so that the search can return to an
 * earlier decision without replaying everything before it.
 */
#ifndef FX_MODEL_CHECKPOINT_H
#define FX_MODEL_CHECKPOINT_H

#include <stddef.h>

struct fx_checkpoint {
	char *data; /* reused by later saves */
	size_t size, used;
};

void fx_checkpoint_save(struct fx_checkpoint *c);
void fx_checkpoint_restore(const struct fx_checkpoint *c);
void fx_checkpoint_free(struct fx_checkpoint *c);

#endif /* FX_MODEL_CHECKPOINT_H */

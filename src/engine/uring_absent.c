/* SPDX-License-Identifier: MIT */
/* In place of engine uring where it was built without liburing. */
#include "engine/engines.h"

static bool uring_usable(char *reason, size_t size)
{
	snprintf(reason, size, "was left out when this library was built");
	return false;
}

const struct fx_engine_ops fx_engine_uring = {
	.name = "uring",
	.summary = "io_uring",
	.usable = uring_usable,
};

/* SPDX-License-Identifier: MIT */
/*
 * Stands in for pipeline_uv.c in a build without that library: the rival is
 * left out.
 */
#include "bench/pipeline.h"

#include <math.h>

double pipeline_uv(void *arg)
{
	(void)arg;
	return NAN;
}

/* SPDX-License-Identifier: MIT */
/* The table that scripts/gen-syscalls.py makes of call/syscalls.tbl. */
#ifndef FX_CALL_TABLE_H
#define FX_CALL_TABLE_H

#include "engine/desc.h"

extern const struct fx_call_desc fx_call_table[FX_NR_ROWS];

#endif /* FX_CALL_TABLE_H */

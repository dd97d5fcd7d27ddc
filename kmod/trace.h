/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints flexsc:*, since calls made here pass those of system calls by.
 * The set is told by its address, as a number that means nothing else.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM flexsc

#if !defined(FXK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FXK_TRACE_H

#include <linux/tracepoint.h>

/* clang-format off */
DECLARE_EVENT_CLASS(flexsc_call,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value),
	TP_STRUCT__entry(
		__field(const void *, set)
		__field(u32, index)
		__field(s64, value)
	),
	TP_fast_assign(
		__entry->set = set;
		__entry->index = index;
		__entry->value = value;
	),
	TP_printk("set=%p entry=%u value=%lld", __entry->set, __entry->index,
		  __entry->value)
);

/* Taken from the ring; the value is its number. */
DEFINE_EVENT(flexsc_call, flexsc_start,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value));
/* Waits for its descriptor, which is the value. */
DEFINE_EVENT(flexsc_call, flexsc_arm,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value));
/* Waits for a thread; the value is its number. */
DEFINE_EVENT(flexsc_call, flexsc_queue,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value));
/* Goes on after it waited; the value is its number. */
DEFINE_EVENT(flexsc_call, flexsc_resume,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value));
/* Asked to end; the value is 1 if it was found under way. */
DEFINE_EVENT(flexsc_call, flexsc_cancel,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value));
/* Complete; the value is its result. */
DEFINE_EVENT(flexsc_call, flexsc_done,
	TP_PROTO(const void *set, u32 index, s64 value),
	TP_ARGS(set, index, value));
/* clang-format on */

#endif /* FXK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

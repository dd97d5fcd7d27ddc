/* SPDX-License-Identifier: MIT */
/* The outcomes of a test's plain run, against which its posted run is held. */
#ifndef CONFORMANCE_TRACE_H
#define CONFORMANCE_TRACE_H

/* The plain run is over: compare from here on. */
void trace_rewind(void);
/* The posted run is over: it must have come as far. */
void trace_end(void);

#endif /* CONFORMANCE_TRACE_H */

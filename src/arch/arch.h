/* SPDX-License-Identifier: MIT */
/* Chooses the machine; everything that depends on it lives below src/arch. */
#ifndef FX_ARCH_ARCH_H
#define FX_ARCH_ARCH_H

#if defined(__x86_64__) && !defined(__ILP32__)
#include "arch/x86_64/context.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/syscall.h"
#else
#error "FlexSC supports x86-64 so far; add a folder below src/arch"
#endif

#endif /* FX_ARCH_ARCH_H */

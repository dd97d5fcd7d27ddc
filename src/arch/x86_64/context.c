/* SPDX-License-Identifier: MIT */
/*
 * Making contexts, and telling the sanitizers of switches that they would not
 * notice. The switch itself is in switch.S.
 */
#include "arch/x86_64/context.h"

#include "arch/x86_64/syscall.h"

#include <asm/prctl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_STACK_REGISTER(low, high) ((void)(low), (void)(high))
#endif

#define HWCAP2_FSGSBASE 2 /* <asm/hwcap2.h>: the kernel allows it */

uint8_t fx_arch_fsgsbase;

extern const char fx_arch_start[];

/* What switch.S expects on a parked stack. */
struct parked {
	uint32_t mxcsr;
	uint16_t x87_control, zero;
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t go_on;
	uint64_t above[2]; /* no return address, and alignment */
};

void fx_arch_init(void)
{
	/* Valgrind knows arch_prctl, not the instruction. */
	fx_arch_fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE &&
			   !RUNNING_ON_VALGRIND;
}

void fx_arch_set_thread_pointer(uint64_t tls)
{
	if (fx_arch_fsgsbase)
		__asm__ volatile("wrfsbase %0" : : "r"(tls) : "memory");
	else
		fx_arch_syscall(SYS_arch_prctl, ARCH_SET_FS, (long)tls, 0, 0,
				0, 0);
}

void fx_arch_float_default(void)
{
	static const uint32_t mxcsr = 0x1f80;
	static const uint16_t x87_control = 0x37f;

	__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(x87_control));
}

void fx_arch_context_here(struct fx_arch_context *context)
{
	*context = (struct fx_arch_context){
		.tls = fx_arch_thread_pointer(),
	};
#if defined(FX_ARCH_ASAN)
	pthread_attr_t attr;
	void *stack = NULL;

	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstack(&attr, &stack, &context->stack_size);
		pthread_attr_destroy(&attr);
	}
	context->stack = stack;
#endif
#if defined(FX_ARCH_TSAN)
	context->fiber = __tsan_get_current_fiber();
#endif
}

void fx_arch_context_init(struct fx_arch_context *context, void *stack,
			  size_t size, void (*entry)(void *), void *arg,
			  uint64_t tls)
{
	char *top = (char *)stack + (size & ~(size_t)15);
	struct parked *parked = (void *)(top - sizeof(*parked));

	*parked = (struct parked){
		.r12 = (uint64_t)(uintptr_t)entry,
		.r13 = (uint64_t)(uintptr_t)arg,
		.go_on = (uint64_t)(uintptr_t)fx_arch_start,
	};
	__asm__("stmxcsr %0" : "=m"(parked->mxcsr));
	__asm__("fnstcw %0" : "=m"(parked->x87_control));
	*context = (struct fx_arch_context){
		.sp = parked,
		.tls = tls,
		.stack = stack,
		.stack_size = size,
	};
	VALGRIND_STACK_REGISTER(stack, top);
#if defined(FX_ARCH_TSAN)
	if (tls == fx_arch_thread_pointer())
		context->fiber = __tsan_create_fiber(0);
#endif
}

void fx_arch_context_fini(struct fx_arch_context *context)
{
#if defined(FX_ARCH_TSAN)
	if (context->fiber)
		__tsan_destroy_fiber(context->fiber);
#endif
	context->sp = NULL;
}

#if defined(FX_ARCH_ASAN) || defined(FX_ARCH_TSAN)
FX_NO_SANITIZE void fx_arch_switch(struct fx_arch_context *save,
				   const struct fx_arch_context *to)
{
	bool same = save->tls == to->tls;

#if defined(FX_ARCH_ASAN)
	if (same)
		__sanitizer_start_switch_fiber(&save->fake_stack, to->stack,
					       to->stack_size);
#endif
#if defined(FX_ARCH_TSAN)
	if (same)
		__tsan_switch_to_fiber(to->fiber, 0);
#endif
	fx_arch_switch_raw(save, to);
	(void)same;
#if defined(FX_ARCH_ASAN)
	if (same)
		__sanitizer_finish_switch_fiber(save->fake_stack, NULL, NULL);
#endif
}
#endif

FX_NO_SANITIZE void fx_arch_entered(const struct fx_arch_context *context)
{
#if defined(FX_ARCH_ASAN)
	__sanitizer_finish_switch_fiber(context->fake_stack, NULL, NULL);
#endif
	(void)context;
}

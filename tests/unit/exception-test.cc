// SPDX-License-Identifier: MIT
// An exception thrown and caught inside a user context, while another is
// being handled outside of it. Prints TAP.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

extern "C" {
struct context {
	void *sp;
	uint64_t tls;
	const void *stack;
	size_t stack_size;
	void *fake_stack, *fiber;
};
void fx_arch_context_here(context *);
void fx_arch_context_init(context *, void *, size_t, void (*)(void *), void *,
			  uint64_t);
void fx_arch_switch_raw(context *, const context *);
}

static context home, guest;
static int destroyed;

struct Guarded {
	~Guarded() { destroyed++; }
};

static __attribute__((noinline)) void thrower(int n)
{
	Guarded guarded;

	if (n == 0)
		throw std::runtime_error("deep");
	thrower(n - 1);
}

static void entry(void *arg)
{
	try {
		thrower(3);
	} catch (const std::runtime_error &e) {
		*static_cast<bool *>(arg) = !std::strcmp(e.what(), "deep");
	}
	fx_arch_switch_raw(&guest, &home);
}

int main()
{
	const size_t size = 128 * 1024;
	void *stack = std::aligned_alloc(64, size);
	bool caught = false, outer = false;

	fx_arch_context_here(&home);
	fx_arch_context_init(&guest, stack, size, entry, &caught, home.tls);
	try {
		throw 42;
	} catch (int n) {
		fx_arch_switch_raw(&home, &guest);
		outer = n == 42;
	}
	std::free(stack);
	std::printf("%sok 1 - thrown and caught in a context\n1..1\n",
		    caught && outer && destroyed == 4 ? "" : "not ");
	return !(caught && outer && destroyed == 4);
}

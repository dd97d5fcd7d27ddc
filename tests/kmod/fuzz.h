/* SPDX-License-Identifier: MIT */
/* The two halves of the fuzzer: who does harm, and who watches and kills. */
#ifndef TESTS_KMOD_FUZZ_H
#define TESTS_KMOD_FUZZ_H

#include <stdint.h>

struct dice {
	uint64_t state;
};

static inline uint32_t roll(struct dice *dice, uint32_t sides)
{
	/* xorshift64*: repeatable, and different in each thread. */
	dice->state ^= dice->state >> 12;
	dice->state ^= dice->state << 25;
	dice->state ^= dice->state >> 27;
	return (uint32_t)((dice->state * 0x2545f4914f6cdd1dull) >> 33) % sides;
}

static inline void dice_init(struct dice *dice, uint64_t seed)
{
	dice->state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 4; i++)
		roll(dice, 2);
}

/* A process that does harm until it is killed, or ends itself. */
_Noreturn void fuzz_child(uint64_t seed);

/* One that uses the module as it should be, beside them; 0 if all went well. */
_Noreturn void fuzz_witness(uint64_t seed);

#endif /* TESTS_KMOD_FUZZ_H */

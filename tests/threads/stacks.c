/* SPDX-License-Identifier: MIT */
/*
 * Memory that a detached thread uses and somebody else is about to: its stack,
 * which is used again as soon as the thread has said that it is done, and what
 * pthread_create() writes its number to, which the thread gives back.
 */
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	AGAIN = 400,
	GIVEN_BACK = 400,
	OTHERS = 8
};

static sem_t done;
static pid_t last;

static void *posts(void *arg)
{
	last = gettid();
	sem_post(&done);
	return arg;
}

/* The C library does not wait for the last steps of its threads. */
static void let_it_end(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");

	if (getenv("LD_PRELOAD") && (!engine || strcmp(engine, "none") != 0))
		return;
	while (tgkill(getpid(), last, 0) == 0)
		usleep(100);
}

static void use_stack_again(const char *by)
{
	size_t size = PTHREAD_STACK_MIN + 16384;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	int nr = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, memory, size);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < AGAIN; i++) {
		if (pthread_create(&thread, &attr, posts, NULL))
			break;
		sem_wait(&done);
		nr++;
		let_it_end();
	}
	/* One that is joined is gone at once. */
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE);
	for (int i = 0; i < AGAIN; i++) {
		if (pthread_create(&thread, &attr, posts, NULL) ||
		    pthread_join(thread, NULL))
			break;
		sem_wait(&done);
		nr++;
	}
	munmap(memory, size);
	printf("%s: used again %d times\n", by, nr);
}

static void *uses_again(void *arg)
{
	use_stack_again(arg);
	return NULL;
}

/* Beside others, whose stacks are not in the way. */
static void uses_many(void)
{
	pthread_t thread[OTHERS];
	pthread_attr_t attr;
	char *memory[OTHERS];
	size_t size = PTHREAD_STACK_MIN + 16384;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < OTHERS; i++) {
			memory[i] = aligned_alloc(4096, size / 4096 * 4096);
			pthread_attr_init(&attr);
			pthread_attr_setstack(&attr, memory[i],
					      size / 4096 * 4096);
			pthread_create(&thread[i], &attr, posts, NULL);
		}
		for (int i = 0; i < OTHERS; i++) {
			pthread_join(thread[i], NULL);
			sem_wait(&done);
			free(memory[i]);
		}
	}
	printf("many stacks\n");
}

struct page {
	pthread_t number;
};

static void *gives_back(void *arg)
{
	struct page *page = arg;

	if (!pthread_equal(page->number, pthread_self()))
		printf("another number\n");
	munmap(page, sizeof(*page));
	sem_post(&done);
	return NULL;
}

static void *number_is_given_back(void *by)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < GIVEN_BACK; i++) {
		struct page *page = mmap(NULL, sizeof(*page),
					 PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pthread_create(&page->number, &attr, gives_back, page))
			break;
		if (i % 16 == 15)
			for (int j = 0; j < 16; j++)
				sem_wait(&done);
	}
	while (sem_trywait(&done) == 0)
		;
	printf("%s: numbers were given back\n", (const char *)by);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&done, 0, 0);
	use_stack_again("first thread");
	pthread_create(&thread, NULL, uses_again, "another");
	pthread_join(thread, NULL);
	uses_many();
	number_is_given_back("first thread");
	pthread_create(&thread, NULL, number_is_given_back, "another");
	pthread_join(thread, NULL);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A thread that ends, and uses names that it has not used before, while
 * another one is loading a library and waits for it: nothing of that may need
 * the loader's lock.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_barrier_t loading;
static sem_t done;

static void *works(void *arg)
{
	char text[6] = "";
	int fd[2];

	pthread_barrier_wait(&loading);
	socketpair(AF_UNIX, SOCK_STREAM, 0, fd);
	send(fd[0], "hello", 5, 0);
	recv(fd[1], text, 5, MSG_WAITALL);
	shutdown(fd[0], SHUT_WR);
	close(fd[0]);
	close(fd[1]);
	puts(text);
	return arg;
}

static void *ends(void *arg)
{
	sem_post(&done);
	return arg;
}

static pthread_t worker;

/* Called by the constructor of the library. */
void while_loading(void);
void while_loading(void)
{
	pthread_t thread;

	pthread_barrier_wait(&loading);
	pthread_join(worker, NULL);
	pthread_create(&thread, NULL, ends, NULL);
	sem_wait(&done);
	pthread_join(thread, NULL);
	puts("loaded");
}

int main(void)
{
	char path[PATH_MAX] = "";
	void *library;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 1;
	strcat(dirname(path), "/libthreads-loaded.so");
	pthread_barrier_init(&loading, NULL, 2);
	sem_init(&done, 0, 0);
	pthread_create(&worker, NULL, works, NULL);
	library = dlopen(path, RTLD_NOW);
	puts(library ? "closed" : dlerror());
	return !library || dlclose(library);
}

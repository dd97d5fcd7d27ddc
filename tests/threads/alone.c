/* SPDX-License-Identifier: MIT */
/*
 * When all threads have ended the process has one kernel thread, as natively,
 * whoever has not been joined yet; and there can be threads again.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	THREADS = 12,
	ROUNDS = 3
};

static void wait_until_alone(void)
{
	unsigned nr;

	do {
		DIR *dir = opendir("/proc/self/task");
		struct dirent *entry;

		nr = 0;
		while ((entry = readdir(dir)))
			nr += entry->d_name[0] != '.' &&
			      strcmp(entry->d_name, "0") != 0;
		closedir(dir);
		usleep(10000);
	} while (nr > 1);
	printf("alone\n");
}

/* Waits in all the ways that need carriers. */
static void *works(void *arg)
{
	int ends[2];
	char byte = 0;

	if (pipe(ends))
		return NULL;
	usleep(100);
	if (write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1)
		return NULL;
	close(ends[0]);
	close(ends[1]);
	return arg;
}

static void *forks(void *arg)
{
	pthread_t thread;
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_create(&thread, NULL, works, arg);
		pthread_join(thread, NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status ? NULL : arg;
}

static int end(pthread_t thread, int how, void **result)
{
	struct timespec past = { 1, 0 };

	switch (how) {
	case 0:
		return pthread_join(thread, result);
	case 1:
		return pthread_tryjoin_np(thread, result);
	case 2:
		return pthread_timedjoin_np(thread, result, &past);
	case 3:
		return pthread_cancel(thread) ?: pthread_join(thread, result);
	case 4:
		return pthread_kill(thread, SIGUSR1) ?:
			       pthread_join(thread, result);
	default:
		*result = NULL;
		return pthread_detach(thread);
	}
}

static void make_and_end(void)
{
	pthread_t thread[THREADS];
	char mark[THREADS];
	void *result = NULL;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, i == 7 ? forks : works,
			       &mark[i]);
	/* These while they run, or while they are kept. */
	pthread_join(thread[8], NULL);
	pthread_detach(thread[9]);
	pthread_join(thread[10], NULL);
	pthread_detach(thread[11]);
	wait_until_alone();
	for (int i = 0; i < 8; i++) {
		int bad = end(thread[i], i, &result);

		printf("%d: %s, %s\n", i, strerror(bad),
		       result == &mark[i] ? "its result" :
		       result		    ? "another" :
					      "none");
	}
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, SIG_IGN);
	for (int i = 0; i < ROUNDS; i++)
		make_and_end();
	works(NULL);
	return 0;
}

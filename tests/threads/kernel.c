/* SPDX-License-Identifier: MIT */
/*
 * What belongs to one thread of the kernel, asked for by threads that have
 * waited before: capabilities, tracing, what new threads inherit.
 */
#include <aio.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int capget(struct __user_cap_header_struct *header,
		  struct __user_cap_data_struct *data);
extern int capset(struct __user_cap_header_struct *header,
		  struct __user_cap_data_struct *data);

static sem_t called;

static int has_raw_net(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];

	capget(&header, data);
	return data[0].effective >> CAP_NET_RAW & 1;
}

static void *drops(void *arg)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];

	usleep(1000);
	capget(&header, data);
	data[0].effective &= ~(1u << CAP_NET_RAW);
	printf("capset %d\n", capset(&header, data));
	usleep(1000);
	printf("has it: %d\n", has_raw_net());
	return arg;
}

static void *has_still(void *arg)
{
	usleep(1000);
	printf("another one: %d\n", has_raw_net());
	return arg;
}

static void *traces(void *arg)
{
	int status = 0;
	pid_t pid;

	usleep(1000);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		raise(SIGUSR2);
		_exit(3);
	}
	for (int i = 0; i < 2; i++) {
		waitpid(pid, &status, 0);
		usleep(1000);
		printf("stopped by %d, goes on: %ld\n", WSTOPSIG(status),
		       ptrace(PTRACE_CONT, pid, NULL, NULL));
	}
	waitpid(pid, &status, 0);
	printf("ended with %d\n", WEXITSTATUS(status));
	return arg;
}

static void is_called(union sigval value)
{
	char name[16] = "";
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	printf("%s: %d processors, %s\n", (char *)value.sival_ptr,
	       CPU_COUNT(&set), name);
	sem_post(&called);
}

static struct sigevent calls(char *what)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD };

	event.sigev_notify_function = is_called;
	event.sigev_value.sival_ptr = what;
	return event;
}

static void *makes_helpers(void *arg)
{
	struct itimerspec at = { .it_value = { .tv_nsec = 1000000 } };
	struct sigevent event = calls("timer");
	struct aiocb block = { .aio_sigevent = calls("aio") };
	char byte;
	timer_t timer;

	usleep(1000);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &at, NULL);
	sem_wait(&called);
	timer_delete(timer);
	block.aio_fildes = open("/dev/zero", O_RDONLY);
	block.aio_buf = &byte;
	block.aio_nbytes = 1;
	aio_read(&block);
	sem_wait(&called);
	return arg;
}

#define FAR 700

static void *has_own_files(void *arg)
{
	usleep(1000);
	printf("unshared: %d\n",
	       close_range(FAR, FAR + 9, CLOSE_RANGE_UNSHARE));
	dup2(1, FAR);
	usleep(1000);
	printf("is there: %d\n", fcntl(FAR, F_GETFD));
	return arg;
}

static void *has_not(void *arg)
{
	usleep(1000);
	printf("nor here: %d\n", fcntl(FAR, F_GETFD));
	return arg;
}

int main(void)
{
	void *(*const start[])(void *) = {
		drops, has_still, traces, makes_helpers, has_own_files, has_not
	};

	sem_init(&called, 0, 0);
	for (unsigned i = 0; i < sizeof(start) / sizeof(start[0]); i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, start[i], NULL);
		pthread_join(thread, NULL);
		fflush(stdout);
	}
	return 0;
}

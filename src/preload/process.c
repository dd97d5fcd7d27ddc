/* SPDX-License-Identifier: MIT */
/*
 * Names of processes. A child has the signal mask, affinity and robust list of
 * the kernel thread that made it, so all of them happen at home.
 */
#include "preload/result.h"
#include "threads/start.h"

#include <pty.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

FX_NEXT(fork);
FX_NEXT(_Fork);
FX_NEXT(execve);
FX_NEXT(execv);
FX_NEXT(execvp);
FX_NEXT(execvpe);
FX_NEXT(fexecve);
FX_NEXT(execveat);
FX_NEXT(posix_spawn);
FX_NEXT(posix_spawnp);
FX_NEXT(system);
FX_NEXT(popen);
FX_NEXT(wait4);
FX_NEXT(waitid);
FX_NEXT(daemon);
FX_NEXT(forkpty);
FX_NEXT(_exit);

static void go_home(void)
{
	struct fx_thread *me = fx_thread_away();

	if (me)
		fx_thread_home(me, FX_HOME_PROCESS);
}

FX_NAME pid_t fork(void)
{
	go_home();
	return FX_SEEN(NEXT(fork)(), SYS_fork, 0);
}

/* Calls no handlers of pthread_atfork(), ours neither. */
FX_NAME pid_t _Fork(void)
{
	pid_t pid;

	go_home();
	pid = NEXT(_Fork)();
	if (pid == 0)
		fx_threads_after_signal_fork();
	return pid;
}

/*
 * Called by arch's vfork.S. The child runs in this memory, as this thread,
 * until it executes something: all its calls must be plain. A thread that is
 * inside of the library is at home to stay.
 */
__attribute__((visibility("hidden"))) void fx_before_vfork(void);
__attribute__((visibility("hidden"))) void fx_after_vfork(void);

void fx_before_vfork(void)
{
	struct fx_thread *me = fx_thread_self();

	go_home();
	if (me) {
		me->held++;
		me->vforked = true;
	}
}

void fx_after_vfork(void)
{
	struct fx_thread *me = fx_thread_self();

	if (me) {
		me->held--;
		me->vforked = false;
	}
}

FX_NAME pid_t forkpty(int *master, char *name, const struct termios *termios,
		      const struct winsize *size)
{
	go_home();
	return NEXT(forkpty)(master, name, termios, size);
}

FX_NAME int daemon(int no_chdir, int no_close)
{
	go_home();
	return NEXT(daemon)(no_chdir, no_close);
}

FX_NAME int execve(const char *path, char *const argv[], char *const env[])
{
	go_home();
	return FX_SEEN(NEXT(execve)(path, argv, env), SYS_execve, (long)path,
		       (long)argv, (long)env);
}

FX_NAME int execv(const char *path, char *const argv[])
{
	go_home();
	return NEXT(execv)(path, argv);
}

FX_NAME int execvp(const char *file, char *const argv[])
{
	go_home();
	return NEXT(execvp)(file, argv);
}

FX_NAME int execvpe(const char *file, char *const argv[], char *const env[])
{
	go_home();
	return NEXT(execvpe)(file, argv, env);
}

FX_NAME int fexecve(int fd, char *const argv[], char *const env[])
{
	go_home();
	return NEXT(fexecve)(fd, argv, env);
}

FX_NAME int execveat(int fd, const char *path, char *const argv[],
		     char *const env[], int flags)
{
	go_home();
	return NEXT(execveat)(fd, path, argv, env, flags);
}

/* Arguments up to NULL, as an array on the stack of the caller. */
#define ARGV_OF(argv, first, list)                                     \
	do {                                                           \
		va_list fx_again;                                      \
		size_t fx_nr = 1;                                      \
                                                                       \
		va_start(list, first);                                 \
		va_copy(fx_again, list);                               \
		while (va_arg(fx_again, char *))                       \
			fx_nr++;                                       \
		va_end(fx_again);                                      \
		argv = __builtin_alloca((fx_nr + 1) * sizeof(char *)); \
		argv[0] = (char *)first;                               \
		for (size_t fx_i = 1; fx_i <= fx_nr; fx_i++)           \
			argv[fx_i] = va_arg(list, char *);             \
	} while (0)

FX_NAME int execl(const char *path, const char *first, ...)
{
	va_list list;
	char **argv;

	ARGV_OF(argv, first, list);
	va_end(list);
	return execv(path, argv);
}

FX_NAME int execlp(const char *file, const char *first, ...)
{
	va_list list;
	char **argv;

	ARGV_OF(argv, first, list);
	va_end(list);
	return execvp(file, argv);
}

FX_NAME int execle(const char *path, const char *first, ...)
{
	char **argv, *const *env;
	va_list list;

	ARGV_OF(argv, first, list);
	env = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, env);
}

FX_NAME int posix_spawn(pid_t *pid, const char *path,
			const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[],
			char *const env[])
{
	go_home();
	return NEXT(posix_spawn)(pid, path, actions, attr, argv, env);
}

FX_NAME int posix_spawnp(pid_t *pid, const char *file,
			 const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attr, char *const argv[],
			 char *const env[])
{
	go_home();
	return NEXT(posix_spawnp)(pid, file, actions, attr, argv, env);
}

FX_NAME int system(const char *command)
{
	go_home();
	return NEXT(system)(command);
}

FX_NAME FILE *popen(const char *command, const char *mode)
{
	go_home();
	return NEXT(popen)(command, mode);
}

FX_NAME void _exit(int status)
{
	if (fx_watched())
		fx_seen_last(status);
	NEXT(_exit)(status);
	__builtin_unreachable();
}

FX_NAME void _Exit(int status)
{
	_exit(status);
}

/* What has to be waited for is waited for at home: there are no too many. */
static pid_t wait_for(pid_t pid, int *status, int options, struct rusage *usage)
{
	pid_t got;

	if (fx_thread_away() && !(options & WNOHANG)) {
		got = NEXT(wait4)(pid, status, options | WNOHANG, usage);
		if (got)
			return got;
		go_home();
	}
	return NEXT(wait4)(pid, status, options, usage);
}

FX_NAME pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	return FX_SEEN(wait_for(pid, status, options, usage), SYS_wait4, pid,
		       (long)status, options, (long)usage);
}

FX_NAME pid_t wait3(int *status, int options, struct rusage *usage)
{
	return wait4(-1, status, options, usage);
}

FX_NAME pid_t waitpid(pid_t pid, int *status, int options)
{
	return wait4(pid, status, options, NULL);
}

FX_NAME pid_t wait(int *status)
{
	return wait4(-1, status, 0, NULL);
}

FX_NAME int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	if (!(options & WNOHANG))
		go_home();
	return FX_SEEN(NEXT(waitid)(type, id, info, options), SYS_waitid, type,
		       id, (long)info, options);
}

/*
 * Stands for an agent's process: linked under an agent's name it has that agent's name, file, arguments and environment,
 * and as many open files; it only sleeps.
 *
 *   BENCH_LOCK=FILE   holds the kernel lock of this file, as Codex does
 *   BENCH_CROWD=N     starts N processes with other names than an agent's, each by BENCH_NAME
 *
 * Says "ready" when it is all that.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

/** About as many as a terminal program with an event loop has: pipes, timers, sockets. */
static const int open_files = 24;

static const char *const names[] = {"bash", "sshd", "chrome", "postgres", "python3", "kworker/u8:1", "zsh"};

static void sleep_for_ever(void) {
  for (;;) pause();
}

/** One in forty is of Node, which runs several agents: such a one must be looked at. */
static const char *name_of(int number) {
  return number % 40 == 0 ? "node" : names[number % (sizeof names / sizeof *names)];
}

/** Each goes through an exec: what has only been forked is not yet what it seems. */
static void crowd(int size) {
  unsetenv("BENCH_CROWD");
  for (int number = 0; number < size; number++) {
    setenv("BENCH_NAME", name_of(number), 1);
    pid_t child = fork();
    if (child < 0) _exit(1);
    if (child > 0) continue;
    execl("/proc/self/exe", name_of(number), NULL);
    _exit(1);
  }
}

int main(void) {
  const char *lock = getenv("BENCH_LOCK");
  const char *size = getenv("BENCH_CROWD");
  const char *name = getenv("BENCH_NAME");
  if (name != NULL) {
    prctl(PR_SET_NAME, name);
    sleep_for_ever();
  }
  if (size != NULL) crowd(atoi(size));
  for (int number = 0; number < open_files; number++)
    if (open("/dev/null", O_RDONLY) < 0) return 1;
  if (lock != NULL) {
    int file = open(lock, O_RDWR | O_CREAT, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) return 1;
  }
  if (write(1, "ready\n", 6) != 6) return 1;
  sleep_for_ever();
}

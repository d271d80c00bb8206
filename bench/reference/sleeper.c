/*
 * Plays the process of an agent: linked under an agent's name, it has that name, program file, arguments, environment, and as many
 * open files. It only sleeps.
 *
 *   BENCH_LOCK=FILE   hold the kernel lock of this file, as Codex does
 *   BENCH_CROWD=N     start N processes with names that belong to no agent (each gets its name by BENCH_NAME)
 *
 * It prints "ready" when it looks like the agent.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

/** About as many descriptors as a terminal program with an event loop has: pipes, timers, sockets. */
static const int open_files = 24;

static const char *const names[] = {"bash", "sshd", "chrome", "postgres", "python3", "kworker/u8:1", "zsh"};

static void sleep_forever(void) {
  for (;;) pause();
}

/** One in forty is called node, like several agents: agentctl must read its arguments. */
static const char *name_of(int number) {
  return number % 40 == 0 ? "node" : names[number % (sizeof names / sizeof *names)];
}

/** Each process calls exec, because agentctl does not trust a process that has only been forked. */
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
    sleep_forever();
  }
  if (size != NULL) crowd(atoi(size));
  for (int number = 0; number < open_files; number++)
    if (open("/dev/null", O_RDONLY) < 0) return 1;
  if (lock != NULL) {
    int file = open(lock, O_RDWR | O_CREAT, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) return 1;
  }
  if (write(1, "ready\n", 6) != 6) return 1;
  sleep_forever();
}

/*
 * Runs one command and prints nanoseconds, peak memory in kB, and exit status.
 *
 *   measure COMMAND ARG…                 until it exits
 *   measure -line COMMAND ARG…           until its first line of output
 *   measure -file FOLDER COMMAND ARG…    until a file appears in the folder
 *
 * This program is small on purpose: until exec, the memory of the parent counts as memory of the child, so a parent of 50 MB would
 * hide every smaller peak. Output goes to /dev/null.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void fail(const char *what) {
  perror(what);
  exit(125);
}

/** The time of the first line; 0: there was none. Reads the rest, too, so that the writer does not block. */
static long long first_line(int from) {
  char bytes[4096];
  long long at = 0;
  ssize_t got;
  while ((got = read(from, bytes, sizeof bytes)) > 0)
    if (at == 0 && memchr(bytes, '\n', got) != NULL) at = now();
  return at;
}

/** A renamed file counts under its last name. */
static long long first_file(int watch) {
  char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
  for (;;) {
    ssize_t got = read(watch, bytes, sizeof bytes);
    if (got <= 0) fail("inotify");
    for (char *at = bytes; at < bytes + got;) {
      struct inotify_event *event = (struct inotify_event *)at;
      size_t length = event->len > 0 ? strlen(event->name) : 0;
      if (length > 0 && (length < 4 || strcmp(event->name + length - 4, ".tmp") != 0)) return now();
      at += sizeof *event + event->len;
    }
  }
}

int main(int count, char **words) {
  int line = count > 1 && strcmp(words[1], "-line") == 0;
  int file = count > 2 && strcmp(words[1], "-file") == 0;
  char **command = words + 1 + line + 2 * file;
  if (*command == NULL) return 125;

  int ends[2] = {-1, -1};
  int watch = -1;
  if (line && pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  if (file) {
    watch = inotify_init1(IN_CLOEXEC);
    if (inotify_add_watch(watch, words[2], IN_MOVED_TO | IN_CLOSE_WRITE) < 0) fail(words[2]);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (line) posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  else posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);

  pid_t child;
  long long begun = now();
  if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) != 0) fail(command[0]);
  if (line) close(ends[1]);
  long long ended = line ? first_line(ends[0]) : file ? first_file(watch) : 0;
  int status;
  struct rusage usage;
  if (wait4(child, &status, 0, &usage) != child) fail("wait4");
  if (!line && !file) ended = now();
  if (ended == 0) return 125;
  printf("%lld %ld %d\n", ended - begun, usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}

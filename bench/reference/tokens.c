/*
 * Reference for the totals of a large record: reads the file from start to end.
 *
 *   tokens FILE        only reads, to measure how fast bytes arrive
 *   tokens -s FILE     adds up the four numbers of every `"usage":{` of a Claude Code record; a message that is written as two
 *                      consecutive lines counts once
 *
 * It finds values by their keys in the bytes and does not parse JSON.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { chunk = 256 * 1024, longest_line = 8 * 1024 * 1024, id_size = 64 };

static char bytes[longest_line + chunk + 1];
static const char *const keys[] = {"\"input_tokens\":", "\"output_tokens\":", "\"cache_read_input_tokens\":",
                                   "\"cache_creation_input_tokens\":"};
static long long sums[4];
static char last_id[id_size];

static void add_usage(char *line, char *usage, char *end) {
  char *id = memmem(line, usage - line, "\"message\":{\"id\":\"", 17);
  if (id != NULL) {
    size_t length = strcspn(id + 17, "\"");
    if (length < id_size && strlen(last_id) == length && memcmp(last_id, id + 17, length) == 0) return;
    if (length < id_size) memcpy(last_id, id + 17, length), last_id[length] = 0;
  }
  for (int which = 0; which < 4; which++) {
    char *at = memmem(usage, end - usage, keys[which], strlen(keys[which]));
    if (at != NULL) sums[which] += atoll(at + strlen(keys[which]));
  }
}

/** The first byte of the incomplete last line. */
static char *add_lines(char *from, char *to) {
  char *last = memrchr(from, '\n', to - from);
  if (last == NULL) return from;
  for (char *at = from; (at = memmem(at, last - at, "\"usage\":{", 9)) != NULL;) {
    char *before = memrchr(from, '\n', at - from);
    char *end = memchr(at, '\n', last + 1 - at);
    add_usage(before == NULL ? from : before + 1, at, end);
    at = end;
  }
  return last + 1;
}

int main(int count, char **words) {
  int sum = count == 3 && strcmp(words[1], "-s") == 0;
  int file = count == 2 + sum ? open(words[1 + sum], O_RDONLY) : -1;
  if (file < 0) return 1;
  long long all = 0;
  size_t carried = 0;
  ssize_t got;
  while ((got = read(file, bytes + carried, chunk)) > 0) {
    all += got;
    if (!sum) continue;
    char *to = bytes + carried + got;
    *to = 0;
    char *rest = add_lines(bytes, to);
    carried = to - rest;
    if (carried > longest_line) carried = 0;
    memmove(bytes, rest, carried);
  }
  printf("%lld %lld %lld %lld %lld\n", all, sums[0], sums[1], sums[2], sums[3]);
  return got == 0 ? 0 : 1;
}

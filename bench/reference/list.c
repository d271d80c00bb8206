/*
 * Reference for `agentctl list` and `list -a`: does only the work that no program can avoid that answers the same question.
 *
 *   list HOME        live sessions of Claude Code, Codex and OpenCode
 *   list -a HOME     also sessions that stopped in the last seven days
 *
 * Without -a it reads:
 * - the announcements of Claude Code;
 * - the stat line of every process; for processes with an agent's name also arguments, environment, directory and program; for
 *   Codex also the open files and their kernel locks; for Node only the arguments;
 * - the folders of all records of Claude Code and Codex, to find the records of the live sessions;
 * - the head (8 KB, or until the first prompt) and the tail (16 KB, or until a line that says whether the turn has ended) of the
 *   record of each live session;
 * - OpenCode's database, read-only: all session ids, and for each live session its row, its last message and the parts of it.
 * It prints one line per session.
 * With -a it also reads: the size and time of every record, head and tail of records from the last seven days, the end of Claude
 * Code's history (256 KB, for sessions left by /clear), and the same rows of OpenCode's recent sessions.
 *
 * It does not handle files that change during the run, other homes or damaged records, and it does not parse JSON: it finds values
 * by their keys in the bytes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_SQLITE
#include <sqlite3.h>
#endif

enum { id_size = 48, word_size = 24, most_live = 4096, buckets = 16384, head_bytes = 8192, tail_bytes = 16384 };
enum { week = 7 * 86400, history_bytes = 256 * 1024, most_bytes = 64 << 20 };

struct live {
  char agent;
  int pid;
  char id[id_size];
  char start[word_size];
  char status[word_size];
  int alive;
};

static struct live lives[most_live];
static int live_count;
static short bucket[buckets];
static int all;
static long long since;
static int older;

static unsigned hash(const char *id, size_t length) {
  unsigned sum = 2166136261u;
  for (size_t at = 0; at < length; at++) sum = (sum ^ (unsigned char)id[at]) * 16777619u;
  return sum % buckets;
}

static struct live *live_with(const char *id, size_t length) {
  for (unsigned at = hash(id, length); bucket[at] != 0; at = (at + 1) % buckets) {
    struct live *found = &lives[bucket[at] - 1];
    if (strlen(found->id) == length && memcmp(found->id, id, length) == 0) return found;
  }
  return NULL;
}

static struct live *add_live(char agent, const char *id, size_t length) {
  if (live_count == most_live || length >= id_size) exit(3);
  struct live *added = &lives[live_count++];
  added->agent = agent;
  memcpy(added->id, id, length);
  unsigned at = hash(id, length);
  while (bucket[at] != 0) at = (at + 1) % buckets;
  bucket[at] = live_count;
  return added;
}

/** Grows to the size of the largest file so far. */
static char *bytes;
static size_t room;

static void need(size_t size) {
  if (size + 1 <= room) return;
  room = size + 1;
  bytes = realloc(bytes, room);
  if (bytes == NULL) exit(3);
}

static ssize_t read_whole(int folder, const char *path) {
  int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  need(65536);
  ssize_t filled = 0, got;
  while ((got = read(file, bytes + filled, room - 1 - filled)) > 0) {
    filled += got;
    if ((size_t)filled == room - 1) need(room * 2);
    else break;
  }
  close(file);
  bytes[filled > 0 ? filled : 0] = 0;
  return filled;
}

/** The text after `"key":"`, up to the next quotation mark. */
static int value_of(const char *text, const char *key, char *value, size_t size) {
  const char *at = strstr(text, key);
  if (at == NULL) return 0;
  at += strlen(key);
  size_t length = strcspn(at, "\"");
  if (length >= size) length = size - 1;
  memcpy(value, at, length);
  value[length] = 0;
  return 1;
}

static int open_folder(int above, const char *path) { return openat(above, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

static void each_entry(int folder, void (*visit)(int folder, struct dirent *entry)) {
  DIR *listing = folder < 0 ? NULL : fdopendir(folder);
  if (listing == NULL) return;
  for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
    if (entry->d_name[0] != '.') visit(dirfd(listing), entry);
  closedir(listing);
}

/* --- announcements */

static void visit_announcement(int folder, struct dirent *entry) {
  char id[id_size];
  if (strstr(entry->d_name, ".json") == NULL || read_whole(folder, entry->d_name) <= 0) return;
  if (!value_of(bytes, "\"sessionId\":\"", id, sizeof id)) return;
  struct live *added = add_live('c', id, strlen(id));
  added->pid = atoi(entry->d_name);
  value_of(bytes, "\"procStart\":\"", added->start, word_size);
  if (!value_of(bytes, "\"status\":\"", added->status, word_size)) strcpy(added->status, "?");
}

/* --- processes */

static char kind_of(const char *name) {
  if (strncmp(name, "claude", 6) == 0) return 'c';
  if (strncmp(name, "codex", 5) == 0) return 'x';
  if (strncmp(name, "opencode", 8) == 0) return 'o';
  if (strncmp(name, "node", 4) == 0 || strcmp(name, "MainThread") == 0 || strcmp(name, "bun") == 0) return 'n';
  return 0;
}

static int locks_folder_pid;

static void visit_open_file(int folder, struct dirent *entry) {
  char target[4096], info[320];
  ssize_t length = readlinkat(folder, entry->d_name, target, sizeof target - 1);
  if (length <= 0) return;
  target[length] = 0;
  char *lock = strstr(target, "/thread-writer-locks/");
  if (lock == NULL || length < 41) return;
  snprintf(info, sizeof info, "/proc/%d/fdinfo/%s", locks_folder_pid, entry->d_name);
  if (read_whole(AT_FDCWD, info) <= 0 || strstr(bytes, "lock:") == NULL) return;
  struct live *added = add_live('x', target + length - 41, 36);
  added->pid = locks_folder_pid;
  added->alive = 1;
}

static void visit_arguments(int pid, ssize_t length) {
  for (char *word = bytes; word < bytes + length; word += strlen(word) + 1) {
    if (strcmp(word, "--session") != 0 && strcmp(word, "-s") != 0) continue;
    char *id = word + strlen(word) + 1;
    if (id >= bytes + length) return;
    struct live *added = add_live('o', id, strlen(id));
    added->pid = pid;
    added->alive = 1;
    return;
  }
}

static void visit_process(int proc, struct dirent *entry) {
  if (entry->d_name[0] < '0' || entry->d_name[0] > '9') return;
  char path[320], target[4096], name[word_size] = "";
  snprintf(path, sizeof path, "%s/stat", entry->d_name);
  if (read_whole(proc, path) <= 0) return;
  char *from = strchr(bytes, '('), *to = strrchr(bytes, ')');
  if (from == NULL || to == NULL) return;
  size_t length = to - from - 1 < word_size - 1 ? (size_t)(to - from - 1) : word_size - 1;
  memcpy(name, from + 1, length);
  char state = to[2];
  char *field = to + 2;
  for (int number = 0; number < 19 && field != NULL; number++) field = strchr(field, ' ') + 1;
  size_t digits = strspn(field, "0123456789");
  int pid = atoi(entry->d_name);
  for (int index = 0; index < live_count; index++)
    if (lives[index].pid == pid && strlen(lives[index].start) == digits && memcmp(lives[index].start, field, digits) == 0)
      lives[index].alive = 1;
  char kind = kind_of(name);
  if (kind == 0 || state == 'Z' || state == 'X') return;
  snprintf(path, sizeof path, "%s/cmdline", entry->d_name);
  ssize_t filled = read_whole(proc, path);
  if (kind == 'n' || filled <= 0) return;
  if (kind == 'o') visit_arguments(pid, filled);
  struct stat owner;
  fstatat(proc, entry->d_name, &owner, 0);
  snprintf(path, sizeof path, "%s/environ", entry->d_name);
  read_whole(proc, path);
  snprintf(path, sizeof path, "%s/cwd", entry->d_name);
  if (readlinkat(proc, path, target, sizeof target) < 0) return;
  snprintf(path, sizeof path, "%s/exe", entry->d_name);
  if (readlinkat(proc, path, target, sizeof target) < 0) return;
  if (kind != 'x') return;
  locks_folder_pid = pid;
  snprintf(path, sizeof path, "%s/fd", entry->d_name);
  each_entry(open_folder(proc, path), visit_open_file);
}

/* --- records that are files */

struct format {
  char agent;
  const char *cwd;
  /** Is in the line of the first prompt, or in one beside it. */
  const char *prompt;
  /** Marks lines that say whether the turn has ended. */
  const char *marks[4];
};

static const struct format claude = {'c', "\"cwd\":\"", "\"type\":\"user\"", {"\"type\":\"assistant\"", "\"type\":\"user\""}};
static const struct format codex = {
    'x', "\"cwd\":\"", "\"user.text\"", {"\"task_complete\"", "\"task_started\"", "\"turn_aborted\""}};

static const char *last_mark(const struct format *format, size_t length) {
  const char *best = NULL;
  const char *found = NULL;
  for (int which = 0; which < 4 && format->marks[which] != NULL; which++)
    for (char *at = bytes; (at = memmem(at, bytes + length - at, format->marks[which], strlen(format->marks[which]))); at++)
      if (at > best) best = at, found = format->marks[which];
  return found;
}

static void read_record(int folder, const char *name, const struct format *format, const struct live *owner) {
  char cwd[512] = "";
  int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) return;
  for (size_t window = head_bytes;; window *= 2) {
    need(window);
    ssize_t got = pread(file, bytes, window, 0);
    if (got < 0) got = 0;
    bytes[got] = 0;
    if (strstr(bytes, format->prompt) != NULL || got < (ssize_t)window || window >= most_bytes) break;
  }
  value_of(bytes, format->cwd, cwd, sizeof cwd);
  const char *mark = NULL;
  for (off_t window = tail_bytes;; window *= 2) {
    off_t from = facts.st_size > window ? facts.st_size - window : 0;
    need(window);
    ssize_t got = pread(file, bytes, window, from);
    mark = last_mark(format, got > 0 ? got : 0);
    if (mark != NULL || from == 0 || window >= most_bytes) break;
  }
  close(file);
  const char *status = owner == NULL ? "stopped" : owner->status[0] != 0 ? owner->status : "running";
  printf("%c %.60s %s %s %s %lld\n", format->agent, name, status, mark == NULL ? "?" : mark, cwd,
         (long long)facts.st_mtime);
}

static const struct format *visited;

/** The id is the part of the name before `.jsonl`. */
static void visit_record(int folder, struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  if (length < 42 || strcmp(entry->d_name + length - 6, ".jsonl") != 0) return;
  struct live *owner = live_with(entry->d_name + length - 42, 36);
  if (owner != NULL && !owner->alive) owner = NULL;
  struct stat facts;
  int recent = 0;
  if (all) {
    if (fstatat(folder, entry->d_name, &facts, 0) != 0) return;
    recent = facts.st_mtime >= since;
    if (!recent && owner == NULL) older++;
  }
  if (owner != NULL || recent) read_record(folder, entry->d_name, visited, owner);
}

static void visit_folder_of_records(int folder, struct dirent *entry) {
  if (entry->d_type == DT_DIR) each_entry(open_folder(folder, entry->d_name), visit_record);
}

static void visit_month(int folder, struct dirent *entry) {
  if (entry->d_type == DT_DIR) each_entry(open_folder(folder, entry->d_name), visit_folder_of_records);
}

static void visit_year(int folder, struct dirent *entry) {
  if (entry->d_type == DT_DIR) each_entry(open_folder(folder, entry->d_name), visit_month);
}

static void read_history(int home) {
  int file = openat(home, ".claude/history.jsonl", O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) != 0) return;
  off_t from = facts.st_size > history_bytes ? facts.st_size - history_bytes : 0;
  need(history_bytes);
  ssize_t got = pread(file, bytes, history_bytes, from);
  int left = 0;
  for (char *at = bytes; got > 0 && (at = memmem(at, bytes + got - at, "\"display\":\"/clear", 17)) != NULL; at++) left++;
  close(file);
  printf("%d cleared\n", left);
}

/* --- OpenCode's database */

#ifdef WITH_SQLITE
static sqlite3 *database;
static sqlite3_stmt *last_message, *parts, *session;

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) exit(4);
  return statement;
}

static void print_session(const char *id, const struct live *owner) {
  char message[id_size] = "";
  size_t part_bytes = 0;
  int completed = 0;
  sqlite3_bind_text(last_message, 1, id, -1, SQLITE_STATIC);
  if (sqlite3_step(last_message) == SQLITE_ROW) {
    snprintf(message, sizeof message, "%s", sqlite3_column_text(last_message, 0));
    completed = strstr((const char *)sqlite3_column_text(last_message, 1), "\"completed\"") != NULL;
  }
  sqlite3_reset(last_message);
  sqlite3_bind_text(parts, 1, message, -1, SQLITE_STATIC);
  while (sqlite3_step(parts) == SQLITE_ROW) {
    sqlite3_column_text(parts, 0);
    part_bytes += sqlite3_column_bytes(parts, 0);
  }
  sqlite3_reset(parts);
  sqlite3_bind_text(session, 1, id, -1, SQLITE_STATIC);
  if (sqlite3_step(session) == SQLITE_ROW)
    printf("o %s %s %s %zu %s %s\n", id, owner == NULL ? "stopped" : "running", completed ? "completed" : "open",
           part_bytes, sqlite3_column_text(session, 0), sqlite3_column_text(session, 1));
  sqlite3_reset(session);
}

static void read_database(const char *home) {
  char path[4096];
  snprintf(path, sizeof path, "%s/.local/share/opencode/opencode.db", home);
  if (access(path, R_OK) != 0) return;
  if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) exit(4);
  last_message = prepare("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1");
  parts = prepare("SELECT data FROM part WHERE message_id = ? ORDER BY id");
  session = prepare("SELECT title, directory, model, time_created, time_updated FROM session WHERE id = ?");
  sqlite3_stmt *ids = prepare(all ? "SELECT id, time_updated FROM session" : "SELECT id FROM session");
  while (sqlite3_step(ids) == SQLITE_ROW) {
    const char *id = (const char *)sqlite3_column_text(ids, 0);
    struct live *owner = live_with(id, strlen(id));
    int recent = all && sqlite3_column_int64(ids, 1) / 1000 >= since;
    if (owner != NULL || recent) print_session(id, owner);
    else older += all;
  }
}
#else
static void read_database(const char *home) { (void)home; }
#endif

int main(int count, char **words) {
  all = count == 3 && strcmp(words[1], "-a") == 0;
  if (count != 2 + all) return 2;
  const char *place = words[1 + all];
  int home = open_folder(AT_FDCWD, place);
  if (home < 0) return 1;
  since = time(NULL) - week;
  each_entry(open_folder(home, ".claude/sessions"), visit_announcement);
  each_entry(open_folder(AT_FDCWD, "/proc"), visit_process);
  visited = &claude;
  each_entry(open_folder(home, ".claude/projects"), visit_folder_of_records);
  visited = &codex;
  each_entry(open_folder(home, ".codex/sessions"), visit_year);
  read_database(place);
  if (all) {
    read_history(home);
    printf("%d older\n", older);
  }
  return 0;
}

// Plausible bugs, each planted alone. `find` stands exactly once in its file.

export interface Mutant {
  name: string;
  file: string;
  find: string;
  put: string;
}

const mutant = (name: string, file: string, find: string, put: string): Mutant => ({
  name,
  file: `src/${file}`,
  find,
  put,
});

export const mutants: readonly Mutant[] = [
  // Who is a process?
  mutant(
    "the start ticks are ignored",
    "core/claims.ts",
    "claim.start !== null && claim.start !== row.identity.start",
    "false",
  ),
  mutant("the boot id is ignored", "core/claims.ts", "claim.boot !== null && claim.boot !== table.boot", "false"),
  mutant(
    "a pid alone is an identity",
    "core/process.ts",
    "a.pid === b.pid && a.start === b.start && a.boot === b.boot",
    "a.pid === b.pid",
  ),
  mutant("a zombie lives", "core/process.ts", 'row.state !== "Z" && row.state !== "X" && row.state !== "x"', "true"),
  mutant(
    "only a traced process is suspended",
    "core/process.ts",
    'row.state === "T" || row.state === "t"',
    'row.state === "t"',
  ),
  mutant("whoever has the number now is the announced one", "core/claims.ts", "if (!isAgents)", "if (false)"),
  mutant(
    "a process younger than its announcement has it",
    "core/claims.ts",
    "if (aheadMs > clockSlackMs)",
    "if (false)",
  ),
  mutant(
    "a process that began just after its announcement was written has it",
    "core/claims.ts",
    "if (aheadMs > startSlackMs)",
    "if (false)",
  ),
  mutant(
    "a process has every session that it ever began",
    "core/match.ts",
    'verdict.kind === "owner" ? begunSince(claim, store) : null',
    "null",
  ),
  mutant(
    "an announcement from another namespace is dead",
    "core/claims.ts",
    "if (elsewhere && row === null)",
    "if (false)",
  ),
  mutant("a hidden process is gone", "core/claims.ts", "row === null && table.hidden.includes(pid)", "false"),
  mutant("the inner pid of another namespace is anybody's", "core/claims.ts", "detail.innerPid !== claim.pid || ", ""),
  // Is it stopped?
  mutant("an unread process table proves absence", "core/derive.ts", "if (!evidence.processes.ok) {", "if (false) {"),
  mutant(
    "gaps in the table do not matter",
    "core/derive.ts",
    "for (const gap of [...(table?.gaps ?? [])]",
    "for (const gap of [...([] as Problem[])]",
  ),
  mutant("doubts do not matter", "core/derive.ts", "doubts.push(...subject.doubts);", ""),
  mutant("an unreadable record is an old one", "core/derive.ts", "if (reading !== null && !reading.ok)", "if (false)"),
  mutant(
    "an unreadable store is an empty one",
    "core/derive.ts",
    "if (store !== null && !store.listing.ok) {",
    "if (false) {",
  ),
  mutant(
    "a store on another device has no invisible writers",
    "core/derive.ts",
    "!table.namespace.initial && store !== null && !store.onRootDevice",
    "false",
  ),
  mutant("unknown is called stopped", "core/derive.ts", ": doubts.length > 0", ": doubts.length > 99"),
  mutant(
    "an open turn is an unknown outcome",
    "core/derive.ts",
    'if (record.turn.state === "open") return "cut-off";',
    "",
  ),
  mutant("cut off is completed", "core/derive.ts", 'return "cut-off";', 'return "completed";'),
  mutant(
    "a failed turn is completed",
    "core/derive.ts",
    'record.turn.state === "closed" ? record.turn.outcome : null;',
    'record.turn.state === "closed" ? "completed" : null;',
  ),
  mutant(
    "an unread process may have nothing",
    "core/match.ts",
    "row.detail.unread.length === 0 || !isLive(row)",
    "row.detail.unread.length >= 0 || !isLive(row)",
  ),
  mutant(
    "an announcement that cannot be read is none",
    "core/match.ts",
    "matchUnreadClaim(pid, reading.problem.source, store, own, table, found);",
    "",
  ),
  mutant(
    "any unread announcement is a dead one's",
    "core/match.ts",
    "if (pid === anyPid || process !== null || inside || blind || table.hidden.includes(pid))",
    "if (false)",
  ),
  // What is it doing?
  mutant(
    "an open turn is idle",
    "core/activity.ts",
    'return { activity: "working", reason: null, since: turn.since, waiting: null };',
    'return { activity: "idle", reason: null, since: turn.since, waiting: null };',
  ),
  mutant(
    "a closed turn is work",
    "core/activity.ts",
    'return { activity: "idle", reason: backgroundReason(record), since: turn.at, waiting: null };',
    'return { activity: "working", reason: null, since: turn.at, waiting: null };',
  ),
  mutant(
    "a pending call is work for sure",
    "core/activity.ts",
    "if (turn.doubt !== null) return unclear(turn.doubt, turn.since);",
    "",
  ),
  mutant(
    "a question in the record is not asked",
    "core/activity.ts",
    "if (waiting !== null) return",
    "if (false) return",
  ),
  mutant(
    "no prompt yet is idle",
    "core/activity.ts",
    'return unclear("no prompt recorded yet");',
    'return { activity: "idle", reason: null, since: null, waiting: null };',
  ),
  mutant(
    "an unclear turn is work",
    "core/activity.ts",
    "return unclear(turn.why);",
    'return { activity: "working", reason: null, since: null, waiting: null };',
  ),
  mutant(
    "the record is believed before the process",
    "core/activity.ts",
    "wordOfOwner(subject.owners, record) ?? ",
    "",
  ),
  mutant(
    "of two owners the idle one speaks",
    "core/activity.ts",
    '["waiting", "working", "unclear", "idle"]',
    '["idle", "unclear", "working", "waiting"]',
  ),
  mutant("one suspended owner suspends all", "core/activity.ts", "rows.every(isSuspended)", "rows.some(isSuspended)"),
  mutant("want of a login is idleness", "core/activity.ts", "if (turn.needs === undefined)", "if (true)"),
  mutant("a dialog at the start is not seen", "core/activity.ts", "wordOfDialog(subject.owners, evidence) ?? ", ""),
  mutant(
    "a turn that a dead process left open is work",
    "core/activity.ts",
    "if (isInherited(turn.since, owners)) return",
    "if (false) return",
  ),
  // Whose session is it?
  mutant(
    "the tag counts wherever it was inherited",
    "core/given-id.ts",
    'env["AGENTCTL_TAG_SID"] !== String(process.row.session)',
    "false",
  ),
  mutant(
    "the tag of another agent counts",
    "core/given-id.ts",
    "tag?.startsWith(prefix) ? tag.slice(prefix.length) : null",
    'tag === undefined ? null : tag.slice(tag.indexOf(":") + 1)',
  ),
  mutant(
    "arguments beat the tag",
    "core/given-id.ts",
    "if (assigned !== null) return",
    "if (assigned === undefined) return",
  ),
  mutant("helpers own sessions", "core/match.ts", 'if (process.role === "helper") continue;', ""),
  mutant(
    "another user's process is ours",
    "core/match.ts",
    "if (process.detail.ours) matchByOwnName",
    "if (true) matchByOwnName",
  ),
  mutant("wrappers are second owners", "core/match.ts", "dropWrappers(table, found);", ""),
  mutant(
    "a directory with two candidates picks one",
    "core/match-directory.ts",
    "more.length === 0 && only !== undefined && processesOf.get(only.key)?.length === 1",
    "only !== undefined",
  ),
  mutant(
    "two processes share a record by directory",
    "core/match-directory.ts",
    "&& processesOf.get(only.key)?.length === 1",
    "",
  ),
  mutant(
    "agents that announce are matched by directory",
    "core/match-directory.ts",
    "!process.rules.announces(process.detail)",
    "true",
  ),
  mutant(
    "a record older than the process is its own",
    "core/match-directory.ts",
    "const isPast = newest < row.startedAt - startSlackMs;",
    "const isPast = false;",
  ),
  mutant("a record of another directory fits", "core/match-directory.ts", "        cwd === detail.cwd &&\n", ""),
  mutant(
    "a silent process has no session",
    "core/match-directory.ts",
    "for (const { key } of candidates) {\n      const why = `process ",
    "for (const { key } of []) {\n      const why = `process ",
  ),
  mutant(
    "a silent host has nothing",
    "core/match-hosts.ts",
    "if (!byLock) doubtWrittenSince(host, evidence, found);",
    "",
  ),
  mutant(
    "a silent host may have everything, however old",
    "core/match-hosts.ts",
    "host.startedAt !== null && writtenAt !== null && writtenAt < host.startedAt - clockSlackMs",
    "false",
  ),
  mutant("a dead host still hosts", "core/match-hosts.ts", "if (host.process !== null && row === null) continue;", ""),
  mutant(
    "of two words of a process the weaker counts",
    "core/found.ts",
    "weightOf(owner) < weightOf(twin)",
    "weightOf(owner) > weightOf(twin)",
  ),
  // What is shown?
  mutant(
    "a live process without a session is not shown",
    "core/match-directory.ts",
    "if (process.detail.ours) found.unrecorded.push({ process, maybe });",
    "",
  ),
  mutant(
    "an unreadable record is passed over beside a readable one",
    "core/subjects.ts",
    "return a.ok ? 1 : -1;",
    "return a.ok ? -1 : 1;",
  ),
  mutant(
    "of two records the older speaks",
    "core/subjects.ts",
    "(b.lastMessageAt ?? 0) - (a.lastMessageAt ?? 0)",
    "(a.lastMessageAt ?? 0) - (b.lastMessageAt ?? 0)",
  ),
  mutant(
    "unread records leave the answer complete",
    "core/derive.ts",
    "for (const { reading } of store.rows) if (!reading.ok) problems.push(reading.problem);",
    "",
  ),
  // Who is ended?
  mutant(
    "another session's process is a member",
    "core/family.ts",
    "nearest(row, (at) => whose.get(at.identity.pid) ?? multiplexer(at) ?? hosts(at)) ??",
    "nearest(row, (at) => multiplexer(at)) ??",
  ),
  mutant(
    "a multiplexer is a member",
    "core/family.ts",
    "whose.get(at.identity.pid) ?? multiplexer(at)",
    "whose.get(at.identity.pid) ?? null",
  ),
  mutant("a daemon is a member", "core/family.ts", "?? daemon(row) ?? ownTerminal(row)", "?? ownTerminal(row)"),
  mutant("the caller ends itself", "core/family.ts", "&& !callerPids.has(row.identity.pid)", ""),
  mutant(
    "an inherited tag is a launch",
    "core/family.ts",
    'env["AGENTCTL_TAG_SID"] === String(session) ? (env["AGENTCTL_TAG"] ?? null) : null',
    'env["AGENTCTL_TAG"] ?? null',
  ),
  // How it is read
  mutant("EPERM means dead", "observe/processes.linux.ts", 'return errorCode(error) === "EPERM";', "return false;"),
  mutant(
    "a process that cannot be read was not there",
    "observe/processes.linux.ts",
    'else if ("code" in row) gaps.push(row);',
    'else if ("code" in row) continue;',
  ),
  mutant(
    "a name with a parenthesis cuts the line",
    "observe/processes.linux.ts",
    'line.lastIndexOf(")")',
    'line.indexOf(")")',
  ),
  mutant(
    "no second look at what seems cut off",
    "observe/observe.ts",
    'return status.state === "stopped" && (record.turn.state === "open" || record.torn || recent);',
    "return false;",
  ),
  mutant(
    "silent processes are not asked again",
    "observe/observe.ts",
    "if (silent.length > 0) readClaimsAgain",
    "if (false) readClaimsAgain",
  ),
  mutant("a signal goes to whoever has the pid", "control/end.ts", "!sameProcess(row.identity, process) || ", ""),
  // What each agent writes
  mutant(
    "who hides its arguments was started with nothing",
    "core/match-directory.ts",
    "if (isPast && rules.hidesArguments?.(detail) !== true) continue;",
    "if (isPast) continue;",
  ),
  mutant(
    "Pi's newest entry follows the line before it",
    "adapters/pi-lines.ts",
    "if (this.wanted !== undefined && entry.id !== this.wanted) {",
    "if (false) {",
  ),
  mutant("a failed request of Pi is tried again by nobody", "adapters/pi-lines.ts", "!finalWords.test(error) || ", ""),
  mutant(
    "Gemini's wrapper is an agent",
    "adapters/gemini.ts",
    'const isAgent = env === null || !!env["GEMINI_CLI_NO_RELAUNCH"] || !!env["SANDBOX"];',
    "const isAgent = env !== undefined;",
  ),
  mutant(
    "Gemini's answer is the end of a turn",
    "adapters/gemini-tail.ts",
    'return { state: "closed", at, outcome: null, doubt: "its answer may have called a tool" };',
    'return { state: "closed", at, outcome: "completed" };',
  ),
  mutant(
    "the later version of a message is passed over",
    "adapters/gemini-tail.ts",
    'const calls = listIn(fields, "toolCalls").map((call) => textIn(call, "status"));',
    "const calls: (string | null)[] = [];",
  ),
  mutant(
    "a part of an id is the id",
    "observe/records.ts",
    "const subject = idIn === undefined ? file.subject : withFile(file.path, (open) => idOf(file, open, idIn));",
    "const subject = file.subject;",
  ),
  mutant(
    "a record that names nobody hides nobody",
    "observe/records.ts",
    'throw Object.assign(new Error("its first line does not say whose record it is"), { code: "EINVAL" });',
    'return "";',
  ),
  mutant(
    "a record that may be of several is of none",
    "core/subjects.ts",
    "store?.nameless?.filter(({ begins }) => id.startsWith(begins)) ?? []",
    "(store?.nameless ?? []).filter(({ begins }) => id === begins)",
  ),
  mutant(
    "a record that nobody can name is no process's",
    "core/match-directory.ts",
    "!hasNameless(store, row.startedAt)",
    "true",
  ),
  mutant(
    "what one host was asked about is taken from the next",
    "observe/observe.ts",
    "taken ??= takeWhole();",
    "taken = takeWhole();",
  ),
  mutant(
    "Qwen's starter is an agent",
    "adapters/qwen.ts",
    'return baseName(script) === "cli.js" ? "agent" : "helper";',
    'return "agent";',
  ),
  mutant(
    "an answer that was broken off is complete",
    "adapters/qwen-lines.ts",
    'isWhole ? "completed" : "interrupted"',
    'isWhole ? "completed" : "completed"',
  ),
  mutant(
    "npm's starter of Copilot is an agent",
    "adapters/copilot.ts",
    '.test(script) ? "helper" : null;',
    '.test(script) ? "agent" : null;',
  ),
  mutant(
    "the end of one call of the model is the end of a turn",
    "adapters/copilot-lines.ts",
    'listIn(answer.data, "toolRequests").length === 0',
    'listIn(answer.data, "toolRequests").length >= 0',
  ),
  mutant(
    "a question that was answered is still asked",
    "adapters/copilot-lines.ts",
    'if (type === "permission.completed") settled.add(data["requestId"]);',
    "",
  ),
  mutant(
    "OpenCode's first message speaks",
    "adapters/opencode-store.ts",
    "ORDER BY time_created DESC, id DESC",
    "ORDER BY time_created, id",
  ),
  mutant(
    "a call that has said nothing runs",
    "adapters/opencode-turn.ts",
    "const held = running.find((tool) => mayWait(tool)) ?? null;",
    "const held = running.find((tool) => mayWait(tool) && false) ?? null;",
  ),
  mutant(
    "what an older version kept counts as much",
    "observe/records.ts",
    "!(set.isOld === true && known?.has(subject) === true)",
    "true",
  ),
  mutant(
    "the log of a database is not read",
    "sys/sqlite.ts",
    "if (isInUse(path)) return withConnection(path, use);",
    'if (isInUse(path)) return withConnection(addressOf(path, "immutable=1"), use);',
  ),
  // What is not opened
  mutant("what somebody may have is not opened", "core/needed.ts", "|| doubts.has(key) ?", "|| false ?"),
  mutant(
    "a session named by a process of an unknown home is looked for in one home alone",
    "core/needed.ts",
    'owners.has(sessionKey(store.agent, "", id))',
    "false",
  ),
  mutant("one outline does not stand for all", "core/needed.ts", "|| ids.has(anyRecord) ? null : ids", "? null : ids"),
  mutant(
    "what changed is answered from the cache",
    "observe/record-cache.ts",
    "entry.stamp !== stampOf(stat)",
    "false",
  ),
];

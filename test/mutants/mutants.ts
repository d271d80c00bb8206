// Plausible bugs, each planted alone. A pattern (pattern.ts) has exactly one place in src, or in the function that is named with it.

export interface Mutant {
  name: string;
  pattern: string;
  replacement: string;
  /** The function that holds the place; null: any. */
  inside: string | null;
}

const mutant = (name: string, pattern: string, replacement: string, inside: string | null = null): Mutant => ({
  name,
  pattern,
  replacement,
  inside,
});

export const mutants: readonly Mutant[] = [
  // Which process is it?
  mutant(
    "the start ticks of an announcement are ignored",
    "$start !== null && $start !== $row.identity.start",
    "false",
  ),
  mutant("the boot id of an announcement is ignored", "$boot !== null && $boot !== $table.boot", "false"),
  mutant(
    "a pid alone identifies a process",
    "$a.pid === $b.pid && $a.start === $b.start && $a.boot === $b.boot",
    "$a.pid === $b.pid",
  ),
  mutant("a zombie is alive", '$row.state !== "Z" && $row.state !== "X" && $row.state !== "x"', "true"),
  mutant("only a traced process is suspended", '$row.state === "T" || $row.state === "t"', '$row.state === "t"'),
  mutant("any program with the announced pid is the announced process", "!isAgents", "false"),
  mutant("a process may be younger than its announcement", "$ahead > clockSlackMs", "false", "judgeHere"),
  mutant(
    "a process that started just after its announcement was written owns it",
    "$ahead > startSlackMs",
    "false",
    "judgeHere",
  ),
  mutant(
    "a process owns every session that it ever began",
    '$verdict.kind === "owner" ? begunSince($$$) : null',
    "null",
  ),
  mutant(
    "the process of an announcement from another namespace is dead",
    "$row === null && $namespace !== null && $namespace !== $table.namespace.id",
    "false",
    "judgeHere",
  ),
  mutant("a hidden process has exited", "$row === null && $table.hidden.includes($pid)", "false"),
  mutant(
    "the inner pid of another namespace is ignored",
    "$detail.innerPid !== $announcement.pid",
    "false",
    "isInnerOf",
  ),
  // Is it stopped?
  mutant("an unread process table proves absence", "!$evidence.processes.ok", "false", "whyNotProven"),
  mutant("gaps in the process table are ignored", "$table?.gaps ?? []", "[]", "whyNotProven"),
  mutant("doubts about a session are ignored", "$doubts.push(...$subject.doubts);", "", "whyNotProven"),
  mutant("an unreadable record is ignored", "$reading?.ok === false", "false", "whyNotProven"),
  mutant("an unreadable store counts as empty", "$store?.listing.ok === false", "false", "whyNotProven"),
  mutant(
    "a store on another device has no invisible writers",
    "$rest && !$store.onRootDevice",
    "false",
    "whyNotProven",
  ),
  mutant("an unknown session is called stopped", "doubt !== undefined", "false", "judge"),
  mutant(
    "a session with an open turn has no outcome",
    'if ($record.turn.state === "open") return "cut-off";',
    "",
    "outcomeOf",
  ),
  mutant("a session that was cut off is completed", 'return "cut-off";', 'return "completed";', "outcomeOf"),
  mutant("a failed turn is completed", "$record.turn.outcome", '"completed"', "outcomeOf"),
  mutant("an unread process owns nothing", "$first === undefined", "true", "noteUnreadProcesses"),
  mutant("an unreadable announcement is ignored", "matchUnreadAnnouncement($$$);", ""),
  mutant(
    "an unreadable announcement belongs to a dead process",
    "$rest || $table.hidden.includes($pid)",
    "false",
    "matchUnreadAnnouncement",
  ),
  // What is it doing?
  mutant("an open turn is idle", '"working"', '"idle"', "wordOfRecord"),
  mutant("a closed turn is work", '"idle"', '"working"', "wordOfRecord"),
  mutant("a pending call is certainly work", "$turn.doubt !== null", "false", "wordOfRecord"),
  mutant("a question in the record is ignored", "waiting !== null", "false", "wordOfRecord"),
  mutant(
    "a session without a prompt is idle",
    '"none"',
    '"none": return { activity: "idle", reason: null, since: null, waiting: null }; case "never"',
    "wordOfRecord",
  ),
  mutant(
    "an unclear turn is work",
    "unclear($turn.why)",
    '{ activity: "working", reason: null, since: null, waiting: null }',
    "wordOfRecord",
  ),
  mutant("the record is believed before the process", "$dialog ?? wordOfOwner($$$)", "$dialog", "activityOf"),
  mutant(
    "of two owners the idle one decides the activity",
    '["waiting", "working", "unclear", "idle"]',
    '["idle", "unclear", "working", "waiting"]',
    "wordOfOwner",
  ),
  mutant("one suspended owner suspends all", "$rows.every(isSuspended)", "$rows.some(isSuspended)", "activityOf"),
  mutant("a failed turn that needs a login is idle", "$turn.needs === undefined", "true", "afterFailure"),
  mutant("a dialog at the start is ignored", "wordOfDialog($$$)", "null", "activityOf"),
  mutant("a turn that a dead process left open is work", "isInherited($turn.since, $owners)", "false", "wordOfRecord"),
  // The owner of a session.
  mutant("an inherited tag counts", '$env["AGENTCTL_TAG_SID"] !== $session', "false"),
  mutant(
    "the tag of another agent counts",
    "$tag?.startsWith($prefix) ? $tag.slice($prefix.length) : null",
    '$tag === undefined ? null : $tag.slice($tag.indexOf(":") + 1)',
  ),
  mutant("arguments beat the tag", "$assigned !== null", "false", "givenId"),
  mutant("helpers own sessions", 'if ($process.role === "helper") continue;', "", "matchProcesses"),
  mutant("another user's process counts as ours", "$process.detail.ours", "true", "matchProcesses"),
  mutant("wrappers are second owners", "dropWrappers($$$);", ""),
  mutant(
    "of two candidates in a directory one is picked",
    "$more.length === 0 && $only !== undefined && $count === 1",
    "$only !== undefined",
    "matchByDirectory",
  ),
  mutant(
    "two processes share a record by directory",
    "$rest && processesOf.get($key)?.length === 1",
    "$rest",
    "matchByDirectory",
  ),
  mutant(
    "agents that announce are matched by directory",
    "!$process.rules.announces($process.detail)",
    "true",
    "matchByDirectory",
  ),
  mutant(
    "a record older than the process belongs to it",
    "$newest < $row.startedAt - startSlackMs",
    "false",
    "directoryCandidates",
  ),
  mutant("a record of another directory fits", "$cwd === $detail.cwd", "true", "directoryCandidates"),
  mutant(
    "a process without an announcement has no session",
    "for (const $each of candidates) add($$$);",
    "",
    "matchByDirectory",
  ),
  mutant("a server that does not answer has no sessions", "doubtWrittenSince($$$);", "", "matchServers"),
  mutant(
    "a server that does not answer may have any session, however old",
    "$server.startedAt !== null && $writtenAt !== null && $rest",
    "false",
    "doubtWrittenSince",
  ),
  mutant("a dead server still serves", "if ($process !== null && $row === undefined) continue;", "", "matchServers"),
  mutant("of two links the weaker counts", "weightOf($a) < weightOf($b)", "weightOf($a) > weightOf($b)"),
  // What is shown?
  mutant("a live process without a session is not shown", "$found.unrecorded.push($row);", ";", "matchByDirectory"),
  mutant("an unreadable record loses against a readable one", "$a.ok ? 1 : -1", "$a.ok ? -1 : 1"),
  mutant(
    "of two records the older one counts",
    "($b.lastMessageAt ?? 0) - ($a.lastMessageAt ?? 0)",
    "($a.lastMessageAt ?? 0) - ($b.lastMessageAt ?? 0)",
  ),
  mutant(
    "an answer with unread records is complete",
    "for (const { reading } of $store.rows) if (!reading.ok) $problems.push(reading.problem);",
    "",
    "collectProblems",
  ),
  // Which processes are stopped with a session?
  mutant("a process of another session is stopped, too", "otherOwners.get($at.identity.pid)", "null", "familyOf"),
  mutant("a terminal multiplexer is stopped, too", "multiplexer($at)", "null", "familyOf"),
  mutant("a browser is stopped, too", "$rest ?? window($at)", "$rest", "familyOf"),
  mutant("a headless browser counts as a person's window", "$kind === null || $isHeadless", "$kind === null", "window"),
  mutant("a person's terminal below the agent is stopped, too", "$below && isKeptByAgent($row)", "$below", "familyOf"),
  mutant("a tool's terminal counts as a person's", "isBelowOwn($row) && isKeptByAgent($row)", "false", "familyOf"),
  mutant("a daemon is stopped, too", "$rest ?? daemon($row)", "$rest", "familyOf"),
  mutant("the caller stops itself", "$rest && !callerPids.has($pid)", "$rest", "familyOf"),
  mutant(
    "an inherited tag is a launch",
    '$row.detail?.env?.["AGENTCTL_TAG_SID"] === String($row.session) ? $tag : null',
    "$tag",
    "launchOf",
  ),
  // How is it read?
  mutant("EPERM means that a process is dead", 'return errorCode($error) === "EPERM";', "return false;"),
  mutant("a process that cannot be read does not exist", "gaps.push($row);", ";", "readTable"),
  mutant("a parenthesis in a name ends the name", '$line.lastIndexOf(")")', '$line.indexOf(")")', "parseStat"),
  mutant(
    "a session that looks cut off is not read again",
    '$status.state === "stopped" && ($record.turn.state === "open" || $record.torn || $recent)',
    "false",
  ),
  mutant(
    "processes without an announcement are not asked again",
    "readAnnouncementsAgain($adapter, $store, $pids)",
    "$store",
  ),
  mutant("a signal goes to any process with the pid", "sameProcess($row.identity, $identity)", "true", "readIfLive"),
  // What does each agent write?
  mutant(
    "a process that hides its arguments was started without any",
    "$isPast && $rules.hidesArguments?.($detail) !== true",
    "$isPast",
    "directoryCandidates",
  ),
  mutant(
    "in Pi the newest entry follows the line before it",
    "this.wanted !== undefined && $entry.id !== this.wanted",
    "false",
  ),
  mutant("Pi never retries a failed request", "!finalWords.test($error)", "false"),
  mutant(
    "the wrapper of Gemini is an agent",
    '$env === null || !!$env["GEMINI_CLI_NO_RELAUNCH"] || !!$env["SANDBOX"]',
    "$env !== undefined",
  ),
  mutant(
    "an answer of Gemini ends the turn",
    '{ state: "closed", at, outcome: null, doubt: $why }',
    '{ state: "closed", at, outcome: "completed" }',
    "afterAnswer",
  ),
  mutant("the later version of a message of Gemini is ignored", 'listIn(fields, "toolCalls").map($status)', "[]"),
  mutant("a part of an id is the id", "$idIn === undefined ? $file.subject : withFile($$$)", "$file.subject"),
  mutant("a record without an id is ignored", "throw errorWith($$$);", 'return "";', "idOf"),
  mutant(
    "a record that may belong to several sessions belongs to none",
    "$id.startsWith($begins)",
    "$id === $begins",
    "namelessOf",
  ),
  mutant("a record without a known id belongs to no process", "!hasNameless($$$)", "true"),
  mutant(
    "a server is asked without the directories of its sessions",
    "$whole.get($key) ?? { ...$outlined, rows: [], ...$read, names }",
    "{ ...$outlined, rows: [] }",
  ),
  mutant("the starter of Qwen is an agent", 'baseName($script) === "cli.js" ? "agent" : "helper"', '"agent"'),
  mutant("an answer that was broken off is complete", '$isWhole ? "completed" : "interrupted"', '"completed"'),
  mutant(
    "npm's starter of Copilot is an agent",
    '$regex.test($script) ? "helper" : null',
    '$regex.test($script) ? "agent" : null',
  ),
  mutant(
    "in Copilot the end of one model call is the end of the turn",
    'listIn($answer.data, "toolRequests").length === 0',
    "true",
  ),
  mutant("an answered question is still asked", 'if ($type === "permission.completed") $settled.add($id);', ""),
  mutant(
    "the first message of OpenCode counts, not the last",
    '"SELECT * FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC"',
    '"SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"',
  ),
  mutant("a silent tool call of OpenCode runs", "$running.find(($tool) => mayWait($tool))", "undefined"),
  mutant("a store of an older version counts like the newest", "$set.isOld === true && $rest", "false"),
  mutant(
    "the log of a database is not read",
    "if (held === undefined && isInUse($path)) return use(this.hold($path, connect($path, null)));",
    'if (held === undefined && isInUse($path)) return use(this.hold($path, connect(addressOf($path, "immutable=1"), null)));',
  ),
  // Which records are read?
  mutant("a record that a process may have is not read", "doubts.has($key)", "false"),
  mutant(
    "a session of a process whose home is unknown is searched in one home",
    'owners.has(sessionKey($agent, "", $id))',
    "false",
  ),
  mutant("a doubt about all records does not concern each", "$ids.has(anyRecord)", "false"),
  mutant("an answer before its prompt is ignored", "mayBeSince($$$)", "false"),
  mutant("lines before the last ones are ignored", "isRooted($$$)", "true"),
  mutant("references ignore sessions that were not read", "$names.like({ beginnings })", "[]"),
  mutant("records in the directories of processes are not read", "$found.add($cwd);", "", "directoriesOfSilent"),
  mutant("a name is found only in the same case", "$small === $text ? $bytes : Buffer.from($small)", "$bytes", "like"),
  mutant(
    "a process that just switched sessions has written everything",
    "$times.length === 0 ? null : Math.max(...$times)",
    "null",
    "settledAt",
  ),
  mutant("a changed record is answered from the cache", "$entry.stamp !== stampOf($stat)", "false"),
  mutant("a process is dead when its first thread has ended", "$stat.threads > 1 && $works", "false"),
  mutant("a zombie still has its sessions", "$rows.filter(isLive)", "$rows", "indexOf"),
  mutant("an open database has no user", "question[0] !== F_UNLCK", "false"),
  mutant("a look that may be stale is not repeated", "$at === null", "true", "observe"),
  mutant("a process that exits during the scan is alive without its locks", "if (isDead(again)) continue;", ""),

  // What does a terminal get, and which files are trusted?
  mutant("stderr is printed as it is", "writeAll(2, printable($text));", "writeAll(2, $text);"),
  mutant("the mark of our own escape sequences can be guessed", "crypto.randomUUID()", '""', "sealed"),
  mutant("bytes reach a terminal as they are", "isTerminal(1) ? readable($text) : $text", "$text"),
  mutant("a note of another user is believed", "if (!$owners.includes($file.uid)) throw $error;", ""),
  mutant("a folder that others can write to is used", "($stat.mode & writableByOthers) === 0", "true"),
  mutant("a page is written through a symbolic link", "$there?.isSymbolicLink() === true", "false", "writeOver"),

  // Which statements are believed?
  mutant(
    "another user's announcement is believed",
    "$uid !== null && ($uid === $table.uid || $uid === $detail?.uid)",
    "$uid !== null",
  ),
  mutant("a sandbox is believed about processes outside", "namedOnlyIn === undefined || $rest", "true"),
  mutant(
    "another user's record is linked to a process of ours",
    "$uid === null || $uid === $detail.uid",
    "true",
    "mayBeTied",
  ),
  mutant("a process is ours by its real uid alone", "$uids !== null && new Set($uids).size === 1", "$uids !== null"),
  mutant(
    "a lock on any file is an announcement",
    "if ($owner === null || $owner === $proc.uid || $owner === $uid) $locked.push($target);",
    "$locked.push($target);",
  ),
  mutant(
    "the process of an announcement from another host is dead",
    "$row === null && namesOtherHost($announcement, $host)",
    "$row !== null && namesOtherHost($announcement, $host)",
  ),
  mutant(
    "a network file system has no writers on other hosts",
    "$store?.isShared === true && !$isProvenHere",
    "$store?.isShared === true && $isProvenHere",
  ),
  mutant(
    "the tag of a confined owner ends other launches",
    "$row.detail?.confinement === null ? launchOf($row) : null",
    "launchOf($row)",
  ),
];

// The sentence of every failure, and a hint about what to do next. Only loaded when one is printed.
import type { FailureCode, FailureData, FailureFacts, FolderProblem, GuardRule } from "../core/failure.ts";
import { oneLine, someLines, someOf } from "../lib/width.ts";
import { refusalText, startProblemWords } from "./agent-start.ts";
import { confirmationHint, confirmationText } from "./confirmations.ts";
import { keepReasonText, keepRemedy } from "./keep-reasons.ts";
import { exitText, nameOwnerText, occupantText, requestAnswerText } from "./occupants.ts";
import { detailText } from "./problems.ts";
import { reasonText, type Sentences, sentenceFor } from "./reasons.ts";

export interface FailureWords {
  message: string;
  hint: string | null;
}

/** `home`: the person's home directory, which paths show as `~`. */
export function failureWords<C extends FailureCode>(
  { code, facts }: { code: C; facts: FailureFacts[C] },
  home = "",
): FailureWords {
  const said = sentences[code](facts, home);
  return typeof said === "string" ? { message: said, hint: null } : { message: said[0], hint: said[1] };
}

export const failureMessage = (failure: FailureData): string => failureWords(failure).message;

type Said = string | readonly [message: string, hint: string | null];

const sentences: { readonly [C in FailureCode]: (facts: FailureFacts[C], home: string) => Said } = {
  "agent-exited": ({ agent, status, output }) =>
    `${agent} exited before it started a session${status === null ? "" : ` (exit status ${status})`}:\n${outputText(output)}`,
  "agent-not-found": ({ name, agents }) => [`no agent is called ${name}`, `known agents: ${agents.join(", ")}`],
  "agent-not-installed": ({ agent, command, install, variable }) => [
    `${agent} is not installed: no ${command} in PATH`,
    `${install}   (or set ${variable})`,
  ],
  "agent-not-session": ({ reference, agent, sessions }) => [
    `${reference} is an agent, not a session`,
    sessions.length === 0
      ? `agentctl list -a --agent ${agent} shows its sessions`
      : `its sessions: ${sessions.map(({ ref, status }) => `${ref} (${status})`).join(", ")}`,
  ],
  "agent-refused": ({ agent, refusal }) => refusalText(refusal, agent),
  "agent-refused-to-start": ({ agent, program, problem, output }) => {
    const [message, hint] = startProblemWords(problem, agent, program);
    return [`${message}\n${outputText(output)}`, hint];
  },
  "already-continuing": ({ ref, pid }) => [
    `cannot continue ${ref}: pid ${pid} is already continuing it`,
    `agentctl wait ${ref} waits until it is done`,
  ],
  "answer-not-written": ({ id, detail }) => [`${detail}; ${id} was started`, `agentctl stop ${id} stops it`],
  "arguments-too-long": () => [
    "nothing was started: the arguments and the environment are too long for this system",
    "put the prompt into a file and let the agent read it",
  ],
  "branch-exists": ({ branch }) => [
    `the branch ${branch} exists already; --base would not change it`,
    "drop --base to continue on that branch, or use --worktree=BRANCH for another one",
  ],
  "changed-during-removal": ({ path }) => `${path} was changed while it was being removed`,
  "changes-unknown": ({ place, detail }) => `git cannot tell what changed in ${place}:\n${detail}`,
  "commit-not-found": ({ commit }) => `no such commit: ${oneLine(commit)}`,
  "config-invalid": ({ path, details }) => [
    `nothing was started, because the defaults for launches are not known: ${path}: ${details.map(detailText).join("; ")}`,
    "repair the file; agentctl config shows all settings",
  ],
  "confirmation-required": ({ confirmations: [first] }) => [confirmationText(first), confirmationHint(first)],
  "demo-failed": ({ problem }) =>
    problem === "not-started"
      ? ["the demo agents did not start", "agentctl doctor may show why"]
      : "a status changed when agentctl's notes were deleted: this is a bug",
  "demo-home-failed": ({ folder, detail }) => [
    `cannot make a temporary home in ${folder}: ${detail}`,
    "the demo needs a folder for temporary files; TMPDIR sets it",
  ],
  "directory-gone": ({ ref, cwd, detail }) => [
    `its directory ${cwd} ${detail === null ? "is gone" : `cannot be used: ${detail}`}`,
    `${detail === null ? "make the directory again (git worktree add, mkdir)" : "make the directory usable"}, then repeat; agentctl logs ${ref} still shows the conversation`,
  ],
  "directory-unknown": ({ ref }) => `the record of ${ref} does not say in which directory it ran`,
  "foreign-repository": ({ cwd, detail }) => `${cwd} is in a git repository of another user\n${detail}`,
  "git-busy": ({ folder }) => [
    `a git command is running in this worktree, or was killed: ${folder} has a lock file`,
    "if no git command is running there, remove index.lock and HEAD.lock",
  ],
  "git-failed": ({ command, detail }) => `git ${command}: ${detail}`,
  "git-lock-failed": ({ folder, detail }) => `cannot lock ${folder}: ${detail}`,
  "git-not-installed": () => ["git is not installed: no git in PATH", "install git"],
  "group-empty": ({ group }) => [
    `no session is in the group ${group}`,
    "agentctl list -a --since 365d shows older sessions, too",
  ],
  "guarded-caller": ({ rule, subject }) => [
    `called from inside an agent's session: ${guardSentences[rule](subject ?? "")}`,
    'a person can lift this: {"insideAgents": "free"} in agentctl\'s config.json',
  ],
  "home-unset": ({ agent }) => [`${agent} cannot find its data directory: HOME is unset`, "set HOME"],
  "hooks-not-supported": ({ agent }) => [
    `${agent} runs its sessions in a server, where agentctl cannot see them exit: --on-start and --on-exit are not supported`,
    "agentctl wait REF waits until the session is done",
  ],
  "inside-repository": ({ root, around }) => [
    `a worktree of ${root} would be inside another repository: ${around}`,
    ownWorktrees,
  ],
  "inside-target": ({ ref }) => [
    `this command runs inside ${ref}: it would be stopped before it could answer`,
    "call it from another terminal; nothing was stopped",
  ],
  "interface-not-started": ({ program, cwd, detail }) => `cannot start ${program} in ${cwd}: ${detail}`,
  interrupted: ({ result }) => `interrupted; ${interruptions[result]}`,
  "interrupted-after-request": ({ agent }) => [
    `interrupted; ${agent} was already asked and may still begin the session`,
    "run agentctl list to see whether it did",
  ],
  "launch-files-unreadable": ({ source, detail }) => [
    `cannot tell which files can be removed: ${source}: ${detailText(detail)}`,
    "agentctl doctor says what to do",
  ],
  "launch-lock-busy": ({ seconds, path }) => [
    `another agentctl has been starting a session for ${seconds} s`,
    `its lock is ${path}`,
  ],
  "left-in-server": ({ id, answer }) => [
    `interrupted; ${id} stays in its server: ${answer === null ? "cannot tell whether its turn was ended" : requestAnswerText(answer)}`,
    `agentctl status ${id}`,
  ],
  "list-incomplete": () => ["the list is incomplete: something could not be read", "agentctl doctor shows what"],
  "live-elsewhere": ({ ref, id, pid, tty, activity }) => [
    `${ref} (${id}) is open elsewhere: ${pid === null ? "in its server" : `pid ${pid}${tty === null ? "" : ` on ${tty}`}`}, ${activity}`,
    `agentctl attach ${ref} goes there; agentctl wait ${ref} waits until it is done`,
  ],
  "lock-file-unusable": ({ path, detail }) => [
    `nothing was started: cannot open ${path}: ${detail}`,
    "remove it; agentctl makes it again",
  ],
  "lock-not-found": ({ place, occupants }) => [
    `${place} is not locked${occupants.length === 0 ? "" : `; ${someOf(occupants.map(occupantText), mostOccupants)}`}`,
    "agentctl lock list shows the locks and the active sessions",
  ],
  "looks-like-option": ({ value, option }) => [
    `${option === null ? `cannot pass on "${value}"` : `${option} cannot take "${value}"`}: it begins with a dash, and the agent would read it as an option`,
    "put the agent's own options after --",
  ],
  "name-taken": ({ name, by }) => [
    `the name ${name} is taken: ${nameOwnerText(by)}`,
    "choose another name, or stop that session first",
  ],
  "no-agent-installed": () => ["no agent is installed", "agentctl adapters shows how to install one"],
  "no-captured-output": ({ ref }) => `${ref} was not launched by agentctl: its output was not captured`,
  "no-commits": ({ root }) => [`${root} has no commits yet: a worktree needs one`, "make a first commit: git commit"],
  "no-disk-space": ({ folder }) => [
    `nothing was started: no space left for ${folder}`,
    "agentctl prune frees some space",
  ],
  "no-match": () => ["no session matches the filter", "agentctl list -a --since 365d shows older sessions, too"],
  "no-session-yet": ({ ref }) => `${ref} has no session yet: nothing to continue`,
  "no-such-interface": ({ agent, action }) => `${agent} cannot ${action} a session`,
  "not-a-branch-name": ({ branch }) => `not a valid branch name: ${oneLine(branch)}`,
  "not-a-pid": ({ reference }) => [`not a process number: ${reference}`, "for example pid:4711"],
  "not-a-program": ({ variable, path }) => [
    `${variable} does not name a program: ${path}`,
    "set it to an executable file",
  ],
  "not-a-repository": ({ cwd, detail }) => [`${cwd} is not in a git repository\n${detail}`, "git init makes one"],
  "not-confirmed": () => "not confirmed; nothing was done",
  "nothing-recorded": ({ ref }) => [`${ref} has written nothing yet`, `agentctl status ${ref} shows what it is doing`],
  "nothing-to-attach-to": (facts) => attachWords[facts.problem](facts),
  "only-for-holder": () => "nothing was started: only the holder of a launch may call exec-agent",
  "option-without-effect": ({ ref, option }) => [
    `${option === "--" ? "arguments after -- have" : `${option} has`} no effect: ${ref} runs in a server with its own settings`,
    `leave out ${option}`,
  ],
  "outside-tmux": ({ ref, tty, keys }) => [
    `${ref} runs at ${tty ?? "its terminal"}, outside tmux: its turn can only be interrupted there`,
    `press ${keys} there; agentctl stop ${ref} stops the session`,
  ],
  "own-stop-failed": ({ command, detail }) => `${command} failed: ${detail}`,
  "pane-elsewhere": ({ ref, pane, command, isInTmux }) =>
    isInTmux
      ? [`${ref} is in tmux pane ${pane} of another tmux server`, `detach, then run: ${command}`]
      : [`${ref} is in tmux pane ${pane}`, `run in a terminal: ${command}`],
  "pane-not-reached": ({ pane }) => `cannot type in tmux pane ${pane}`,
  "partial-clone": ({ command, detail, place, commit }) => [
    `git ${command}: ${detail}\n${place} is a partial clone`,
    `agentctl fetches nothing; git -C ${place} diff ${commit} fetches the missing objects`,
  ],
  "path-exists": ({ path }) => [`${path} exists already`, "use --name to choose another name"],
  "permission-void": ({ agent, permission, policy }) => [
    `${agent} would ignore --permission ${permission}: a policy of this host takes precedence (${policy})`,
    "leave out --permission to start it with its own settings",
  ],
  "place-locked": ({ place, directory, lock }) => [
    `${place} is ${occupantText(lock)}`,
    `agentctl lock rm ${directory} removes the lock`,
  ],
  "place-occupied": ({ cwd, occupants }, home) => {
    const [first = "", ...more] = someLines(occupants.map(occupantText), mostOccupants);
    const unlock = occupants.some(({ kind }) => kind === "lock")
      ? "agentctl lock list shows the lock, agentctl lock rm removes it; "
      : "";
    return [
      [`cannot launch in ${shortPath(cwd, home)}: ${first}`, ...more.map((text) => `  ${text}`)].join("\n"),
      `${unlock}use --worktree for a separate checkout, or --share to start anyway`,
    ];
  },
  "place-unknown": () => "cannot tell where the session worked: its directory is not known",
  "processes-unreadable": () => ["nothing was done: the process table cannot be read", "agentctl doctor says why"],
  "program-not-started": ({ program, cwd, detail }) => `cannot start ${program} in ${cwd}: ${detail}`,
  "read-failed": ({ path, detail }) => `cannot read ${path}: ${detail}`,
  "record-unreadable": ({ ref, detail }) => [
    `the record of ${ref} cannot be read: ${detailText(detail)}`,
    `agentctl why ${ref}`,
  ],
  "reference-ambiguous": ({ reference }) => [`${reference} matches several sessions`, "use one of these refs"],
  "reference-unresolved": ({ reference }) => [
    `cannot tell whether there is a session ${reference}`,
    "agentctl doctor says what could not be read",
  ],
  "remove-failed": ({ path, detail }) => `cannot remove ${path}: ${detail}`,
  "repository-unknown": ({ cwd, detail }) => `cannot tell whether ${cwd} is in a git repository: git: ${detail}`,
  "server-gone": ({ address, detail }) =>
    `its server ${address} cannot be reached: ${detail ?? "it is gone, or belongs to another user"}`,
  "server-is-private": ({ address }) => `its server (${address}) answers only the program that started it`,
  "server-not-running": ({ agent, home, start }) => [
    `${agent} begins sessions in its server, and no server is running for ${home}`,
    start === null ? null : `start one first: ${start}`,
  ],
  "server-refused": ({ detail }) =>
    `its server refused: ${detail.code === "server-refused" ? detail.text : detailText(detail)}`,
  "server-refused-session": ({ agent, detail }) => `${agent} did not begin the session: ${detailText(detail)}`,
  "server-timed-out": ({ address }) => `its server ${address} does not answer`,
  "server-unreachable": ({ agent, address, detail }) =>
    `${agent} cannot be reached at ${address}: ${detail === null ? "it is gone" : detailText(detail)}`,
  "session-gone": ({ id }) => `${id} exited and left no record`,
  "session-not-found": ({ reference }) => [
    notFound[reference] ?? `no session ${reference}`,
    reference === "@self"
      ? "agentctl list shows all running sessions"
      : "agentctl list -a --since 365d shows older sessions",
  ],
  "setup-failed": ({ output, ...end }) =>
    [`--setup ${end.status === null ? "was " : ""}${exitText(end)}; nothing was started`, output]
      .filter((text) => text !== "")
      .join("\n"),
  "signal-not-permitted": ({ pid }) => `not permitted to signal pid ${pid}`,
  "start-time-unknown": () => "cannot tell when the session began",
  "start-timed-out": ({ agent, seconds, output }) => [
    `${agent} did not begin a session within ${seconds} s and was stopped\n${outputText(output)}`,
    "use --start-timeout to give it more time",
  ],
  "start-unconfirmed": ({ agent, address, seconds }) => [
    `${agent} (${address}) did not answer within ${seconds} s; it may still begin the session`,
    "run agentctl list to see whether it did",
  ],
  "status-unknown": ({ ref, why }) => [
    `cannot tell whether ${ref} is running: ${reasonText(why)}`,
    `agentctl why ${ref} shows the evidence`,
  ],
  "system-error": ({ detail }) => detail,
  "terminal-required": ({ reference }) => [
    "the agent's interface needs a terminal",
    `agentctl send ${reference} TEXT continues without one; --print shows the command`,
  ],
  "too-many-older-files": ({ count }) => [
    `${count} changed files are older than the session: too many to leave out`,
    "git diff shows them all",
  ],
  "untrusted-folder": ({ folder, problem, variable }) => [
    `${folder} ${sentenceFor(folderProblems, problem)}`,
    `set ${variable} to a folder of yours`,
  ],
  usage: ({ message, hint }) => [message, hint],
  "wait-timed-out": ({ until, timeout, sessions }) =>
    `not ${until} after ${timeout}: ${sessions.map(({ called, status }) => `${oneLine(called)} is ${status ?? "gone"}`).join(", ")}`,
  "worktree-ambiguous": ({ name, paths }) => [`${name} may be ${paths.join(" or ")}`, "use its path"],
  "worktree-folder-untrusted": ({ folder, problem }) => [
    `cannot make a worktree in ${folder}: it ${problem === "other-owner" ? "belongs to another user" : "is writable by other users"}`,
    ownWorktrees,
  ],
  "worktree-folder-unusable": ({ folder, detail }) => `cannot make a worktree in ${folder}: ${detail}`,
  "worktree-kept": ({ path, reasons }) => [
    [`${oneLine(path)} is kept:`, ...reasons.map((reason) => `  ${oneLine(keepReasonText(reason))}`)].join("\n"),
    keepRemedy(reasons),
  ],
  "worktree-misplaced": ({ path, place, detail, failure }) =>
    `${path} was not removed (${failureMessage(failure)}), and could not be moved back from ${place}: ${detail}`,
  "worktree-not-created": ({ path, detail }) => `git made no worktree at ${path}:\n${detail}`,
  "worktree-not-found": ({ name }) => [`no worktree is called ${name}`, "agentctl worktree list shows them all"],
  "worktree-taken": ({ path, detail }) => `git made no worktree at ${path}:\n${detail}`,
  "worktrees-out-of-reach": ({ folder, count }) => [
    `${count === 1 ? "the worktree" : `the ${count} worktrees`} in ${folder} cannot be reached: a disk may not be mounted`,
    "mount the disk; if the worktrees were deleted: git worktree prune",
  ],
  "write-failed": ({ path, detail, variable }) => [
    `cannot write to ${path}: ${detailText(detail)}`,
    variable === null ? null : `set ${variable} to use another folder`,
  ],
};

type AttachFacts = FailureFacts["nothing-to-attach-to"];

const attachWords: Readonly<Record<AttachFacts["problem"], (facts: AttachFacts) => Said>> = {
  "not-running": ({ ref }) => [`nothing to attach to: ${ref} is not running`, `agentctl resume ${ref} reopens it here`],
  "in-server": (facts) => [
    `nothing to attach to: ${facts.ref} runs in a server on ${facts.host} (${pidText(facts)}), without a terminal`,
    `agentctl resume ${facts.ref} opens an interface to it here`,
  ],
  "no-terminal": (facts) => [
    `nothing to attach to: ${facts.ref} runs on ${facts.host} (${pidText(facts)}), without a terminal`,
    `agentctl logs -f ${facts.ref} follows it; agentctl stop ${facts.ref}, then resume, takes it over`,
  ],
  "outside-tmux": (facts) => terminalWords(facts, "outside tmux"),
  "pane-not-found": (facts) =>
    terminalWords(facts, "started inside tmux, but no tmux server that answers has its pane"),
  "tmux-not-installed": (facts) => terminalWords(facts, "started inside tmux, but there is no tmux in PATH"),
};

const terminalWords = (facts: AttachFacts, where: string): Said => [
  `cannot attach: ${facts.ref} runs on ${facts.host} at ${facts.tty} (${pidText(facts)}), ${where}`,
  `go to the window of ${facts.tty}, or follow it here: agentctl logs -f ${facts.ref}`,
];

const pidText = ({ pid }: AttachFacts): string => (pid === null ? "process unknown" : `pid ${pid}`);

const notFound: Readonly<Record<string, string>> = {
  ".": "no session in this directory",
  "@self": "this command does not run inside a session that agentctl can see",
  "@last": "no session was launched by agentctl",
};

const ownWorktrees = 'set a folder of yours in agentctl\'s config.json: {"worktrees": "~/worktrees"}';

const interruptions: Readonly<Record<FailureFacts["interrupted"]["result"], string>> = {
  "nothing-started": "nothing was started",
  stopped: "everything that was started was stopped",
  "cleaned-up": "everything was cleaned up",
  "maybe-sent": "the server may have received the message",
};

const guardSentences: Readonly<Record<GuardRule, (subject: string) => string>> = {
  "permission-bypass": () => "--permission must be read or edit",
  "own-setting-bypass": () => "the agent's own setting allows everything; pass --permission edit or read",
  "agent-arguments": () => "arguments after -- are not allowed",
  hooks: () => "--on-start and --on-exit are not allowed",
  "session-of-others": (ref) => `${ref} is not one of its own sessions`,
  "launch-of-others": (launch) => `the launch ${launch} is not one of its own`,
  command: (name) => `${name} is not allowed`,
};

const folderProblems: Sentences<FolderProblem> = {
  "not-a-folder": () => "is not a folder",
  "other-owner": ({ uid }) => `belongs to another user (uid ${uid})`,
  "writable-by-others": () => "is writable by other users",
  unusable: ({ detail }) => `cannot be used: ${detail}`,
};

const mostOccupants = 5;

const outputText = (output: string): string => (output === "" ? "it printed nothing" : output);

const shortPath = (path: string, home: string): string =>
  home !== "" && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;

// What an agent may do, and why it refuses a launch or exits before its session begins.
import type { Refusal, StartProblem, StartProblemCode } from "../core/failure.ts";
import type { OwnSetting, PermissionEffect } from "../core/permission.ts";
import { type Sentences, sentenceFor } from "./reasons.ts";

export const effectText = (effect: PermissionEffect): string => effects[effect];

const letsItEdit = "--permission edit lets it edit";

const effects: Readonly<Record<PermissionEffect, string>> = {
  "approved-only": `it reads below its directory; edits and commands that you did not approve for this directory are denied; ${letsItEdit}`,
  "cannot-edit": `it runs in a read-only sandbox and cannot edit; ${letsItEdit}`,
  "changes-nothing": "it edits no files and runs no commands",
  "denies-changes": `edits and commands that its settings do not allow are denied; ${letsItEdit}`,
  "edits-allowed-commands": "it edits files, also outside its directory, and runs the commands that its settings allow",
  "edits-and-runs": "it edits files and runs every command",
  "edits-approved-commands":
    "it edits below its directory and in the temporary folder, and runs commands that only read or that you approved for this directory",
  "edits-below": "it edits files below its directory",
  "edits-below-allowed-commands": "it edits files below its directory and runs the commands that its settings allow",
  "edits-below-and-runs": "it edits files below its directory and runs every command",
  "edits-below-checked-commands": "it edits files below its directory; its own safety check decides about commands",
  "edits-below-kept-approvals":
    "it edits files below its directory and runs the commands that were approved permanently",
  "edits-below-no-commands": "it edits files below its directory; no commands, no subagents",
  "edits-below-simple-commands":
    "it edits files and runs simple file commands below its directory; other commands are denied unless its settings allow them",
  "edits-in-sandbox": "it edits below its directory, in a sandbox",
  "edits-no-commands": "it edits files everywhere; it has no tool to run commands",
  everything: "it may do everything without asking",
  "everything-by-default": "it may do everything without asking; --permission read or edit restricts it",
  "everything-not-as-root": "it may do everything without asking; as root it refuses to start",
  "everything-not-denied": "it may do everything that its settings do not deny, without asking",
  "model-decides": `edits and commands that its settings do not allow are denied, and a model decides about its other tool calls; ${letsItEdit}`,
  "no-sandbox": "no sandbox: it may do everything without asking",
  "own-command-rules": "its own rules decide which commands run",
  "own-sandbox": "its commands run in its own sandbox",
  "plans-first": "it makes a plan first",
  "plans-only": `it reads and plans, and cannot edit; ${letsItEdit}`,
  "read-only-sandbox": "a read-only sandbox: its commands can change nothing and have no network",
  "reads-below": "it reads below its directory; edits and commands are denied",
  "reads-below-and-web": "it reads files below its directory and the web; no edits, no commands, no subagents",
  "reads-everywhere": "it reads and searches everywhere; it has no tools to edit or to run commands",
  "reads-files-and-web": "it reads files and the web; it has no other tools",
  "settings-decide":
    "its settings decide; without settings it edits and runs commands, and only access outside its directory is denied",
  "settings-only": `it edits and runs only what its settings allow; ${letsItEdit}`,
  "settings-unreadable": "agentctl cannot read its settings: it may do everything",
  "workspace-sandbox":
    "a sandbox: its commands write below its directory (not in .git) and in the temporary folder, without network access",
};

export function ownSettingText({ mode, effect, mayLeavePlan, unread }: OwnSetting): string {
  if (unread !== undefined)
    return `its settings cannot be read, so it may do everything: ${unread.path}: ${unread.detail}`;
  const meaning = effect === null ? "see its settings" : effectText(effect);
  const exception = mayLeavePlan ? "; but it may switch to its plan mode, and then do everything" : "";
  return `${mode === null ? "" : `its own mode "${mode}": `}${meaning}${exception}`;
}

export const refusalText = (refusal: Refusal, agent: string): string => sentenceFor(refusals, { ...refusal, agent });

const refusals: Sentences<Refusal & { agent: string }> = {
  "bypass-as-root": ({ agent, variable }) =>
    `${agent} refuses to skip permissions as root (it accepts ${variable} inside a sandbox)`,
  "continues-in-interface": ({ agent }) =>
    `${agent} continues a session only in its own interface: agentctl resume opens it`,
  "settings-not-json": ({ variable, permission }) =>
    `${variable} is not plain JSON: the rules of --permission ${permission} cannot be added to it`,
  "takes-no-arguments": ({ agent }) =>
    `a session in a server of ${agent} takes no arguments: leave out -- and everything after it`,
};

type MessageAndHint = readonly [message: string, hint: string | null];

/** `program`: the command that starts the agent. */
export const startProblemWords = (problem: StartProblem, agent: string, program: string): MessageAndHint =>
  startProblems[problem.code](problem, agent, program);

const startProblems: Readonly<
  Record<StartProblemCode, (problem: StartProblem, agent: string, program: string) => MessageAndHint>
> = {
  "bypass-as-root": ({ variable }, agent) => [
    `${agent} refuses to skip permissions as root`,
    joined("use --permission edit, or run it as another user", variable && `inside a sandbox, set ${variable}`),
  ],
  "config-unreadable": (_, agent) => [`${agent} cannot read its settings`, "repair the file that it names"],
  "database-locked": (_, agent) => [`another program was using the database of ${agent}`, "try again"],
  "directory-gone": ({ command }) => [
    "the directory of this session is gone",
    joined("make the directory again", command && `open the session with ${command}`),
  ],
  "no-such-session": ({ variable, isByDirectory }, agent) => [
    `${agent} cannot find this session`,
    joined(
      isByDirectory && "continue it in the directory where it was started",
      variable && `set ${variable} to its data folder`,
    ),
  ],
  "not-logged-in": ({ variable, command }, agent, program) => [
    `${agent} is not logged in`,
    `${command ?? `start ${program} and log in`}${variable === undefined ? "" : `, or set ${variable}`}`,
  ],
  "prompt-too-long": (_, agent) => [
    `the prompt is too long for ${agent}`,
    "put it into a file and let the agent read that file",
  ],
  "session-exists": (_, agent) => [`${agent} already has a session with this id`, "agentctl send continues it"],
  "session-in-use": (_, agent) => [`another process of ${agent} has this session open`, "agentctl list shows where"],
  "unknown-argument": ({ command }, agent, program) => [
    `${agent} does not accept one of its arguments`,
    `see ${command ?? `${program} --help`}; arguments differ between versions`,
  ],
  "unknown-model": ({ command }, agent) => [
    `${agent} does not know this model`,
    command === undefined ? null : `${command} lists the models`,
  ],
  "untrusted-directory": ({ variable, command, argument }, agent) => [
    `${agent} works only in a directory that it trusts`,
    joined(command, variable && `set ${variable}`, argument && `pass -- ${argument}`),
  ],
};

const joined = (...parts: readonly (string | false | undefined)[]): string | null =>
  parts.filter((part) => part).join("; or ") || null;

// The flags that select sessions, for `list` and for the commands that act on several.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { agentNamed, agentNames } from "../service/agent-names.ts";
import type { SessionChoice } from "../service/chosen-sessions.ts";
import { type SessionFilter, statusWords } from "../service/select.ts";
import { type Arguments, closest, type FlagSpec, labelsOf, usage } from "./arguments.ts";
import type { Context } from "./command.ts";

export const filterFlags: readonly FlagSpec[] = [
  { flag: "--needs-me", help: "sessions that wait for a person" },
  { flag: "--agent", value: "A", repeated: true, help: "sessions of this agent" },
  { flag: "--status", value: "S", repeated: true, help: "sessions with this status, or running, stopped, unknown" },
  { flag: "--group", value: "G", help: "sessions of this launch group" },
  { flag: "--label", value: "K=V", repeated: true, help: "sessions with this label" },
  { flag: "--cwd", value: "DIR", help: "sessions in the git worktree of DIR, or in DIR itself" },
];

export const severalFlags: readonly FlagSpec[] = [{ flag: "--all", help: "all running sessions" }, ...filterFlags];

/** References, or a filter. */
export function choiceOf(args: Arguments, command: string, { cwd }: Context): SessionChoice {
  const hasFilter = severalFlags.some(({ flag }) => args.has(flag));
  if (args.words.length === 0 && !hasFilter)
    throw usage(`${command} needs a session, or a filter such as --group or --all`, command);
  if (args.words.length > 0 && args.has("--all")) throw usage("name sessions or pass --all, not both", command);
  return { references: args.words, filter: hasFilter ? filterOf(args, command, cwd) : null };
}

export function filterOf(args: Arguments, command: string, cwd: string): SessionFilter {
  const agents = args.all("--agent").map((name) => {
    const agent = agentNamed(name);
    if (agent !== null) return agent;
    throw usage(`no agent ${name}; known: ${agentNames.join(", ")}`, command, closest(name, ["claude", ...agentNames]));
  });
  const statuses = args.all("--status");
  for (const word of statuses)
    if (!statusWords.includes(word))
      throw usage(`no status ${word}; known: ${statusWords.join(", ")}`, command, closest(word, statusWords));
  const given = args.one("--cwd");
  // An unset variable in a script must not mean the current directory.
  if (given === "") throw usage("--cwd needs a directory", command);
  const directory = given === null ? null : resolve(cwd, given);
  if (directory !== null && !existsSync(directory)) throw usage(`no directory ${given}`, command);
  return {
    ...{ agents, statuses, labels: labelsOf(args, command), cwd: directory },
    ...{ group: args.one("--group"), text: args.one("--grep") },
    ...{ needsPerson: args.has("--needs-me"), served: args.has("--served") },
  };
}

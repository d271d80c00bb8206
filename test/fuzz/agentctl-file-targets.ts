// agentctl's own files: launch notes, exit statuses, the configuration. Anyone can write to them.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { adapters } from "../../src/agents/registry.ts";
import { launchFiles, readNotes } from "../../src/control/notes.ts";
import { read } from "../../src/core/problem.ts";
import { homesOf, readSettings } from "../../src/observe/homes.ts";
import { listSessions } from "../../src/observe/observe.ts";
import { sessionJson } from "../../src/service/session-json.ts";
import { problemText } from "../../src/words/problems.ts";
import type { Victim } from "../conformance/damaged-case.ts";
import { isPlain } from "../conformance/invariants.ts";
import type { Dice } from "../truth/random.ts";
import { type Corpus, jsonOf, mutate, mutatedJson } from "./mutate.ts";
import { isText } from "./parsed-shapes.ts";
import { plain, type Target } from "./target.ts";

const ids = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"] as const;

const note = (id: string) => ({
  ...{ schema: 1, id, agent: "demo", home: "/home/user/.demo-agent", session: ids[1], name: "a name", group: "g" },
  ...{
    labels: { a: "b", c: "d" },
    at: "2026-11-16T00:00:00.000Z",
    permission: "edit",
    prompt: "do it",
    launchedBy: null,
  },
});

const config = {
  homes: { demo: ["/home/user/.demo-agent", "~/other"], codex: ["/x"], "claude-code": [] },
  insideAgents: "free",
};

export function ownTargets(corpus: Corpus, folder: string, victim: Victim): Target[] {
  const env = { HOME: join(folder, "own"), AGENTCTL_HOME: join(folder, "own", ".agentctl") };
  const damaged = (value: unknown, dice: Dice): Buffer =>
    dice.chance(0.7)
      ? Buffer.from(mutatedJson(value, dice, corpus))
      : mutate(Buffer.from(`${JSON.stringify(value)}\n`), dice, corpus);
  return [
    {
      name: "notes",
      weight: 30,
      make: (dice) => plain("a launch note", damaged(note(ids[0]), dice), (input) => noteFaults(env, victim, input)),
    },
    {
      name: "exit",
      weight: 20,
      make: (dice) => {
        const bytes = Buffer.from(dice.pick(["0\n", "143\n", "255\n", "1000\n", "-1\n", "\u0661\n", "1\n\n", ""]));
        return plain("an exit status", dice.chance(0.5) ? bytes : mutate(bytes, dice, corpus), (input) =>
          exitFaults(env, input),
        );
      },
    },
    {
      name: "config",
      weight: 30,
      make: (dice) => {
        const isWhole = dice.chance(0.1);
        return plain("config.json", damaged(config, dice), (input) => configFaults(env, input, isWhole));
      },
    },
  ];
}

type Environment = { HOME: string; AGENTCTL_HOME: string };

function withFiles<T>(files: Readonly<Record<string, Buffer>>, use: () => T): T {
  const paths = Object.keys(files);
  for (const path of paths) mkdirSync(dirname(path), { recursive: true });
  for (const path of paths) writeFileSync(path, files[path] ?? "");
  const clean = () => {
    for (const path of paths) rmSync(path, { force: true });
  };
  try {
    const result = use();
    if (!(result instanceof Promise)) clean();
    else void result.finally(clean).catch(() => {});
    return result;
  } catch (error) {
    clean();
    throw error;
  }
}

function noteFaults(env: Environment, { live, dead }: Victim, input: Buffer): string[] {
  const files = {
    [launchFiles(env, ids[0]).note]: input,
    [launchFiles(env, ids[1]).note]: Buffer.from(JSON.stringify(note(ids[1]))),
    [launchFiles(env, ids[1]).exit]: Buffer.from("7\n"),
  };
  const { notes, problems } = withFiles(files, () => readNotes(env));
  const other = notes.find(({ id, name }) => id === ids[1] && name === "a name");
  const shown = [...live.sessions, ...dead.sessions]
    .slice(0, 3)
    .flatMap((session) => notes.map((launch) => sessionJson({ session, ref: "ref", launch })));
  return [
    ...(notes.length + problems.length === 2 ? [] : ["a note is neither read nor said to be broken"]),
    ...(other?.exit?.status === 7 ? [] : ["another note is read differently"]),
    ...notes.flatMap(({ id, agent, home, session, name, group, labels, at, prompt, launchedBy, exit }) => [
      ...([id, agent, home, at].every(isText) ? [] : ["a field of a note is no text"]),
      ...([session, name, group, prompt, launchedBy].every((word) => word === null || isText(word))
        ? []
        : ["a word of a note is no text"]),
      ...(Object.values(labels).every(isText) ? [] : ["a label is no text"]),
      ...(exit === null || Number.isSafeInteger(exit.status) ? [] : ["an exit status is no number"]),
    ]),
    ...(shown.every((json) => isPlain(deepTexts(json).join(" ")))
      ? []
      : ["a note brings control characters into JSON"]),
    ...(shown.every((json) => Bun.deepEquals(JSON.parse(JSON.stringify(json)), json))
      ? []
      : ["JSON loses a part of a note"]),
    ...(problems.every((problem) => problemText(problem) !== "") ? [] : ["a problem without words"]),
  ];
}

const deepTexts = (value: unknown): string[] =>
  isText(value)
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => [key, ...deepTexts(inner)])
      : [];

function exitFaults(env: Environment, input: Buffer): string[] {
  const files = {
    [launchFiles(env, ids[0]).note]: Buffer.from(JSON.stringify(note(ids[0]))),
    [launchFiles(env, ids[0]).exit]: input,
  };
  const { notes, problems } = withFiles(files, () => readNotes(env));
  const exit = notes[0]?.exit ?? null;
  const isOne = /^\d{1,3}\n$/.test(input.toString("latin1"));
  return [
    ...(notes.length === 1 && problems.length === 0 ? [] : ["a broken exit status costs its note"]),
    ...(isOne === (exit !== null) ? [] : ["an exit status is read wrongly"]),
    ...(exit === null || (Number.isInteger(exit.status) && exit.status >= 0) ? [] : ["an exit status is no number"]),
  ];
}

async function configFaults(env: Environment, input: Buffer, isWhole: boolean): Promise<string[]> {
  const path = join(env.HOME, ".config", "agentctl", "config.json");
  const look = async (): Promise<string[]> => {
    const { settings, problems } = readSettings(env);
    const homes = adapters.flatMap((adapter) => homesOf(adapter, env, settings));
    const value = jsonOf(input.toString("utf8"));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const free = isObject && Object.hasOwn(value, "insideAgents") && Object(value)["insideAgents"] === "free";
    const noProcesses = {
      boot: "b",
      namespace: { id: null, initial: true },
      rows: [],
      gaps: [],
      hidden: [],
      uid: process.getuid?.() ?? -1,
    };
    const list = isWhole
      ? await listSessions({ adapters, env, processes: () => read(noProcesses), isMadeUp: true })
      : null;
    return [
      ...(value === undefined || isObject || problems.length > 0 ? [] : ["a broken configuration is not said"]),
      ...(settings.insideAgents !== "free" || value === undefined || free
        ? []
        : ["agents are free though nobody said so"]),
      ...(homes.every((home) => isText(home) && home.startsWith("/")) ? [] : ["a home is no absolute path"]),
      ...(list === null || list.complete === (list.problems.length === 0) ? [] : ["complete, with problems"]),
    ];
  };
  return await withFiles({ [path]: input }, look);
}

// Conversations with servers that say anything, in any order, as often as they like.
import type { ServerProtocol, Talk } from "../../src/agents/adapter.ts";
import { deriveSessions } from "../../src/core/derive.ts";
import { read } from "../../src/core/problem.ts";
import type { Victim } from "../conformance/damaged-case.ts";
import { faultsOf } from "../conformance/invariants.ts";
import type { Dice } from "../truth/random.ts";
import type { Material } from "./corpus.ts";
import { jsonOf, mutate, mutatedJson } from "./mutate.ts";
import { isText, readingFaults, servedFaults } from "./parsed-shapes.ts";
import type { Homes } from "./store-targets.ts";
import { plain, type Target } from "./target.ts";

export function serverTargets(material: Material, { records: all }: Homes): Target[] {
  const { adapter } = material;
  const { server } = adapter;
  if (server === undefined) return [];
  const captured = material.cases.flatMap((each) => (each.server === null ? [] : [each.server]));
  return [
    {
      name: `server:${adapter.agent}`,
      weight: 60,
      make(dice) {
        const victim = dice.pick(all);
        const ids = [victim.id, dice.uuid(), dice.uuid()];
        const said = server.transport === "plain" ? plainAnswer(dice, ids) : answers(dice, captured, ids);
        const input = Buffer.from(
          damaged(said, dice, material)
            .map((text) => JSON.stringify(text))
            .join("\n"),
        );
        return plain("answers of a server", input, (bytes) => serverFaults(victim, server, heardIn(bytes)));
      },
    },
  ];
}

/** A message per line; a broken line (while an input is made smaller) is no message. */
const heardIn = (bytes: Buffer): string[] => bytes.toString("utf8").split("\n").map(jsonOf).filter(isText);

const plainAnswer = (dice: Dice, ids: readonly string[]): string[] => [
  JSON.stringify({
    sessions: ids.map((id) => ({
      id,
      activity: dice.pick(["working", "waiting", "idle", "constructor"]),
      waiting: dice.chance(0.5) ? null : { kind: dice.pick(["permission", "toString"]), text: "x", options: ["a"] },
    })),
  }),
  ...(dice.chance(0.2) ? ["taken"] : []),
];

/** What an app-server answers when all goes well. */
function answers(dice: Dice, captured: readonly Record<string, unknown>[], ids: readonly string[]): string[] {
  const known: Record<string, unknown> = captured.length > 0 ? dice.pick(captured) : {};
  const status = () => dice.pick([{ type: "idle" }, { type: "active", activeFlags: [] }, { type: "notLoaded" }, {}]);
  const middle = dice.below(ids.length + 1);
  const pages = dice.chance(0.5)
    ? [{ id: "list ", result: { data: ids, nextCursor: null } }]
    : [
        { id: "list ", result: { data: ids.slice(0, middle), nextCursor: "c" } },
        { id: "list c", result: { data: ids.slice(middle), nextCursor: null } },
      ];
  return [
    { id: "initialize", result: known["initialize"] ?? { userAgent: "x" } },
    ...pages,
    ...ids.map((id) => ({ id, result: { thread: { id, status: status(), ephemeral: false } } })),
    { id: "turns", result: { data: [{ id: "t", status: "inProgress" }] } },
    { id: "state", result: { thread: { status: status() } } },
    { id: "queued", result: {} },
  ].map((message) => JSON.stringify(message));
}

function damaged(said: readonly string[], dice: Dice, material: Material): string[] {
  let heard = [...said];
  for (let times = dice.below(4); times > 0; times -= 1) {
    const [from, to] = [dice.below(heard.length + 1), dice.below(heard.length + 1)];
    const one = heard[from] ?? "";
    heard = dice.pick<() => string[]>([
      () => heard.toSpliced(from, 1),
      () => heard.toSpliced(to, 0, one),
      () => heard.toSpliced(from, 1).toSpliced(to, 0, one),
      () => heard.toSpliced(to, 0, dice.pick(["", "null", "{}", "[]", "\0", '{"method":"x"}', '{"id":1}', "not JSON"])),
      () => heard.toSpliced(from, 1, mutate(Buffer.from(one), dice, material).toString("utf8")),
      () => heard.toSpliced(from, 1, mutatedJson(jsonOf(one) ?? null, dice, material)),
      () =>
        heard.toSpliced(from, 1, JSON.stringify({ id: idOf(one), error: { code: -1, message: dice.pick(refusals) } })),
      () => heard.toReversed(),
    ])();
  }
  return heard;
}

const asked = { secret: null, directories: ["/project"] };

const refusals = ["no active turn", "not materialized", "\x1b[31m", ""];

const idOf = (message: string): unknown => (jsonOf(message) as { id?: unknown } | null | undefined)?.id ?? null;

function serverFaults(
  { adapter, store, noProcesses }: Victim,
  server: ServerProtocol,
  heard: readonly string[],
): string[] {
  const answer = converse(server.sessions(asked), heard);
  const others = [server.interrupt("i", asked), server.send("i", 'a "text"\n', "m", asked)].flatMap((talk) => {
    const word = converse(talk, heard);
    return word === null
      ? []
      : readingFaults(word.reading, (text) => (isText(text) ? [] : ["what was done is no text"]));
  });
  if (answer === null) return others;
  const { reading } = answer;
  const at = Date.parse("2027-01-01T00:00:00Z");
  const place = { agent: adapter.agent, home: store.home, address: "/socket", process: null, startedAt: null };
  const evidence = { at, processes: read(noProcesses), stores: [store], dialogs: [], problems: [], directories: {} };
  const answered = reading.ok ? reading : { ...reading, problem: { ...reading.problem, source: "/socket" } };
  const list = deriveSessions({ ...evidence, servers: [{ ...place, answer: answered }] }, [adapter]);
  const stopped = (id: string): boolean =>
    list.sessions.some((session) => session.id === id && session.status.state === "stopped");
  // For other agents a lock names the owner, and the answer gives only the activity.
  const served = reading.ok && adapter.serversNameBy === "answer" ? reading.value : [];
  return [
    ...others,
    ...readingFaults(reading, (sessions) => servedFaults(adapter, sessions)),
    ...faultsOf(adapter, store, list),
    ...served.flatMap(({ id }) => (stopped(id) ? ["a server has it, but it is stopped"] : [])),
    ...(reading.ok ? unanswered(heard.slice(0, answer.after)) : []),
  ];
}

/** Of an app-server: threads that it listed and was never heard about, although the answer counts as whole. */
function unanswered(heard: readonly string[]): string[] {
  const messages = heard
    .map(jsonOf)
    .map((value) => (Object(value) ?? {}) as { id?: unknown; result?: { data?: unknown }; method?: unknown });
  const told = new Set(messages.map(({ id }) => id));
  const pages = messages.filter(({ id, method }) => isText(id) && id.startsWith("list ") && method === undefined);
  const listed = pages.flatMap(({ result }) => (Array.isArray(result?.data) ? result.data : []));
  const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
  // What is nested too deep for us to read may tell of it.
  const isMaybeTold = (id: string): boolean => heard.some((text) => jsonOf(text) === undefined && text.includes(id));
  return listed.some((id) => isText(id) && isUuid.test(id) && !told.has(id) && !isMaybeTold(id))
    ? ["the answer counts as whole, but a listed thread was never heard about"]
    : [];
}

/** As observe/servers.ts does it: after every message, until there is an answer. */
function converse<T>(talk: Talk<T>, heard: readonly string[]) {
  for (let after = 1; after <= heard.length; after += 1) {
    const step = talk.next(heard.slice(0, after));
    if ("answer" in step) return { reading: step.answer, after };
    if (!step.send.every(isText)) throw new Error("what is to be sent is no text");
  }
  return null;
}

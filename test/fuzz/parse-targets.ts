// Calls each parser directly, so that no caller catches its errors: records, lines, announcements, histories, settings.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { read } from "../../src/core/problem.ts";
import { linesBackward, linesForward } from "../../src/lib/jsonl.ts";
import { entryOf, type RecordPlace } from "../../src/observe/conversation.ts";
import { withFile } from "../../src/observe/files.ts";
import { parseJson, recordFile } from "../../src/observe/records.ts";
import { readCounts, sumUp, type Totals } from "../../src/observe/usage/read-counts.ts";
import type { Counts } from "../../src/observe/usage/tally.ts";
import { ownSettingText } from "../../src/words/agent-start.ts";
import type { Dice } from "../truth/random.ts";
import { filesNamed, type Material } from "./corpus.ts";
import { jsonOf, mutate, mutatedJson, repetitive } from "./mutate.ts";
import {
  announcementFaults,
  isText,
  lineFaults,
  readingFaults,
  recordFaults,
  successionFaults,
  totalsFaults,
} from "./parsed-shapes.ts";
import { plain, type Target } from "./target.ts";

export function parseTargets(material: Material, folder: string): Target[] {
  const { adapter, records, announcements } = material;
  const scratch = join(folder, `${adapter.agent}.jsonl`);
  const short = records.toSorted((a, b) => a.bytes.length - b.bytes.length).slice(0, Math.ceil(records.length / 4));
  const aboutRecord = (dice: Dice, among = records) => {
    const { bytes, id } = dice.pick(among);
    return { bytes, id, check: (input: Buffer) => recordCheck(material, scratch, id, input) };
  };
  return [
    {
      name: `parse-record:${adapter.agent}`,
      weight: 40,
      make(dice) {
        const { bytes, id, check } = aboutRecord(dice);
        return plain(`record ${id}`, mutate(bytes, dice, material), check);
      },
    },
    {
      name: `repetitive-record:${adapter.agent}`,
      weight: 6,
      make(dice) {
        // In a short one it is more likely that the damaged text is one that matters.
        const { bytes, id, check } = aboutRecord(dice, dice.chance(0.7) ? short : records);
        return plain(`record ${id} with a repetitive text`, withRepetition(bytes, dice, material), check);
      },
    },
    {
      name: `parse-line:${adapter.agent}`,
      weight: 200,
      make(dice) {
        let text = dice.pick(material.lines);
        for (let times = 1 + dice.below(3); times > 0; times -= 1)
          text = mutatedJson(jsonOf(text) ?? {}, dice, material);
        return plain("a line", Buffer.from(text), (input) => lineCheck(material, input));
      },
    },
    ...(announcements.length === 0 ? [] : [announcementTarget(material)]),
    ...settingTargets(material),
  ];
}

function recordCheck({ adapter }: Material, scratch: string, id: string, input: Buffer): string[] {
  writeFileSync(scratch, input);
  const file = { path: scratch, subject: id };
  return withFile(scratch, (open) => {
    const record = adapter.parseRecord(recordFile(file, open));
    const before = adapter.historyOf?.(recordFile(file, open)) ?? null;
    const entries = [...linesForward(open.bytes, open.size)].map((line) => entryOf(adapter, line));
    const backward = [...linesBackward(open.bytes, open.size, open.size)].length;
    const facts = entries.flatMap((entry) => (entry.kind === "known" ? [entry.facts] : []));
    // Forward and backward see the same lines, an empty first one aside.
    const sameLines = Math.abs(entries.length - backward) <= 1;
    return [
      ...readingFaults(record, (value) => recordFaults(adapter, id, value)),
      ...(before === null || adapter.isId(before) ? [] : ["its history is no id"]),
      ...(sameLines ? [] : [`${entries.length} lines forward, ${backward} backward`]),
      ...new Set(facts.flatMap(lineFaults)),
      ...totalsFaults(sumUp(entries)),
      ...countFaults({ adapter, home: "/", file: { ...file, set: plainFiles } }, sumUp(entries), input),
    ];
  });
}

const plainFiles = { folder: "", name: /./ };

/** Counting passes most lines over, and goes on where it ended before: it must not matter. */
function countFaults(place: RecordPlace, totals: Totals, input: Buffer): string[] {
  const { adapter, file } = place;
  const cache = { folder: `${file.path}-cache`, build: "this", leastBytes: 0, newestKeys: 2 };
  rmSync(cache.folder, { recursive: true, force: true });
  const text = ({ tokens, byModel, denied, costUsd }: Counts): string =>
    JSON.stringify([tokens, [...byModel], adapter.countsDenied ? denied : null, costUsd]);
  const anew = text(readCounts(place, null));
  const grown = [0.3, 0.9, 1].map((part) => {
    writeFileSync(file.path, input.subarray(0, input.length * part));
    return text(readCounts(place, cache));
  });
  return [
    ...(anew === text(totals) ? [] : ["counted otherwise than read"]),
    ...(anew === grown.at(-1) ? [] : ["counted on otherwise than anew"]),
  ];
}

function lineCheck({ adapter }: Material, input: Buffer): string[] {
  const line = parseJson(input);
  if (!line.ok) return [];
  const facts = adapter.parseLine(line.value);
  const announced = adapter.invocation.announcedIn(line.value);
  const succession = adapter.successions?.parse(line.value) ?? null;
  return [
    ...(facts === null ? [] : lineFaults(facts)),
    ...(announced === null || adapter.isId(announced) ? [] : ["what it announced is no id"]),
    ...(succession === null ? [] : successionFaults(adapter, succession)),
  ];
}

/** One text of one line becomes long and repetitive. */
function withRepetition(bytes: Buffer, dice: Dice, material: Material): Buffer {
  const lines = bytes.toString("utf8").trimEnd().split("\n");
  const at = dice.below(lines.length);
  const texts = [...(lines[at] ?? "").matchAll(/(?<=[:[,])"(?:[^"\\]|\\.)*"(?!\s*:)/g)];
  if (texts.length === 0) return bytes;
  // The longest are those that a person or a tool wrote.
  const longest = texts.toSorted((a, b) => b[0].length - a[0].length).slice(0, dice.pick([1, 3]));
  const { index, 0: old } = dice.pick(dice.chance(0.6) ? longest : texts);
  const text = JSON.stringify(repetitive(dice, material, 150_000, old));
  const line = lines[at] ?? "";
  const made = line.slice(0, index) + text + line.slice(index + old.length);
  return Buffer.from(`${lines.with(at, made).join("\n")}\n`);
}

function announcementTarget(material: Material): Target {
  const { adapter, announcements } = material;
  return {
    name: `parse-announcement:${adapter.agent}`,
    weight: 100,
    make(dice) {
      const { bytes, pid } = dice.pick(announcements);
      const text = dice.chance(0.8) ? mutatedJson(jsonOf(bytes.toString("utf8")), dice, material) : null;
      return plain(
        `announcement of ${pid}`,
        text === null ? mutate(bytes, dice, material) : Buffer.from(text),
        (input) => {
          const line = parseJson(input);
          if (!line.ok) return [];
          const announcement = adapter.announcements?.parse({
            pid,
            path: "announcement",
            writtenAt: 0,
            value: line.value,
          });
          return announcement === undefined
            ? []
            : readingFaults(announcement, (value) => announcementFaults(adapter, pid, value));
        },
      );
    },
  };
}

/** Settings and histories: the captured ones, or where there are none a few lines that the agent could have. */
function settingTargets(material: Material): Target[] {
  const { adapter } = material;
  const { trust, invocation, successions } = adapter;
  const settings = [
    ...filesNamed(material, /\.claude\.json$|config\.toml$/),
    ...writtenSettings.map((text) => Buffer.from(text)),
  ];
  const histories = filesNamed(material, /history\.jsonl$/);
  const damaged = (dice: Dice): Buffer =>
    dice.chance(0.2) ? Buffer.from(repetitive(dice, material, 50_000)) : mutate(dice.pick(settings), dice, material);
  const cwd = "/home/user/project";
  const row = (argv: string[]) => ({
    identity: { pid: 7, start: "1", boot: "b" },
    ...{ parent: 1, session: 7, state: "S", name: adapter.command, tty: "/dev/pts/1", startedAt: 0 },
    detail: {
      ...{ uid: 0, ours: true, argv, exe: "/usr/bin/x", cwd, env: {}, lockedFiles: [], namespace: null, innerPid: 7 },
      ...{ sameFiles: true, confinement: null, unread: [] },
    },
  });
  return [
    {
      name: `settings:${adapter.agent}`,
      weight: 20,
      make: (dice) => {
        const argv = [adapter.command, ...(dice.chance(0.3) ? [dice.pick(["-p", "exec", "--", "-C", "\ud800"])] : [])];
        return plain("settings", damaged(dice), (input) => {
          const text = input.toString("utf8");
          const asks = trust?.mustAsk(text, row(argv), { root: cwd, main: "/" }) ?? false;
          const { isBypass, ...own } = invocation.ownSetting.judge([null, text], [cwd]);
          const meaning = ownSettingText({ isBypass, ...own });
          const alone = ownSettingText(invocation.ownSetting.judge([text], [cwd, "/"]));
          return [
            ...(typeof asks === "boolean" ? [] : ["mustAsk is neither true nor false"]),
            ...(isText(meaning) && isText(alone) ? [] : ["the meaning of its setting is no text"]),
            ...(/\[native code\]|\[object /.test(meaning + alone) ? ["the meaning shows our own insides"] : []),
            ...(typeof isBypass === "boolean" ? [] : ["isBypass is neither true nor false"]),
          ];
        });
      },
    },
    ...(successions === undefined || histories.length === 0
      ? []
      : [
          {
            name: `history:${adapter.agent}`,
            weight: 20,
            make: (dice: Dice) =>
              plain("history", mutate(dice.pick(histories), dice, material), (input) =>
                input
                  .toString("utf8")
                  .split("\n")
                  .flatMap((text) => {
                    const line = parseJson(Buffer.from(text));
                    const succession = line.ok ? successions.parse(line.value) : null;
                    return succession === null
                      ? []
                      : readingFaults(read(succession), (value) => successionFaults(adapter, value));
                  }),
              ),
          },
        ]),
  ];
}

const writtenSettings = [
  '{"permissions":{"defaultMode":"acceptEdits"},"projects":{"/home/user":{"hasTrustDialogAccepted":true}}}',
  'model = "x"\nsandbox_mode = "workspace-write"\n\n[projects."/home/user/project"]\ntrust_level = "trusted"\n',
];

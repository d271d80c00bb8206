// Huge files: measures the time and memory of one reading.
import { hasRecordFiles, type Victim } from "../conformance/damaged-case.ts";
import type { Dice } from "../truth/random.ts";
import type { Material } from "./corpus.ts";
import { jsonOf, repetitive } from "./mutate.ts";
import { type Homes, lookAtDamaged } from "./store-targets.ts";
import { patienceMs, type Target } from "./target.ts";

const mb = 1024 * 1024;

/** A look reads one record at a time; the rest is what Bun's collector leaves lying about. */
const limitMb = 400;

export function hugeTargets(material: Material, { records }: Homes): Target[] {
  const { adapter } = material;
  if (!hasRecordFiles(adapter)) return [];
  return Object.entries(kinds).map(([kind, make]) => ({
    name: `huge-${kind}:${adapter.agent}`,
    // They take seconds: about one of all of these in each round.
    weight: 1 / 18,
    make(dice: Dice) {
      const victim = dice.pick(records);
      const input = make(victim, dice, material);
      // The whole check looks, shows, counts and reads the conversation in both directions: several times a look.
      const check = (bytes: Buffer): string[] => lookAtDamaged(victim, bytes, () => []);
      return { about: `${kind} ${victim.path}`, input, check, limitMs: 8 * patienceMs, limitMb };
    },
  }));
}

const linesOf = ({ bytes }: Victim): string[] => bytes.toString("utf8").replace(/\n$/, "").split("\n");

const kinds: Record<string, (victim: Victim, dice: Dice, material: Material) => Buffer> = {
  "line-50mb": (victim, dice) => {
    const lines = linesOf(victim);
    const at = dice.pick([0, dice.below(lines.length), lines.length - 1]);
    const line = lines[at] ?? "";
    const long = line.replace(/^\{/, `{"padding":"${"x".repeat(50 * mb)}",`);
    return Buffer.from(`${lines.with(at, long).join("\n")}${dice.chance(0.7) ? "\n" : ""}`);
  },
  "line-7mb": (victim, dice, material) => {
    const lines = linesOf(victim);
    const at = dice.below(lines.length);
    const text = JSON.stringify(repetitive(dice, material, 3 * mb));
    return Buffer.from(`${lines.with(at, (lines[at] ?? "").replace(/^\{/, `{"padding":${text},`)).join("\n")}\n`);
  },
  "tiny-lines": (victim, dice, material) => {
    const line = dice.pick(["{}", "[]", '{"type":"x"}', "x", "", '{"type":"user"}', small(dice.pick(material.lines))]);
    return Buffer.concat([victim.bytes, Buffer.from(`${line}\n`.repeat(100_000))]);
  },
  /** Every line names the one before it. */
  "chained-lines": (victim, dice, material) => {
    const line = small(dice.pick(dice.chance(0.5) ? linesOf(victim) : material.lines));
    const count = Math.min(100_000, Math.floor((50 * mb) / line.length));
    const made = Array.from({ length: count }, (_, index) => countedIds(line, victim.id, index));
    return Buffer.concat([victim.bytes, Buffer.from(`${made.join("\n")}\n`)]);
  },
  "many-copies": (victim) =>
    Buffer.from(`${linesOf(victim).join("\n")}\n`.repeat(Math.ceil((50 * mb) / victim.bytes.length))),
  blank: (_victim, dice) => Buffer.alloc(4 * mb, dice.pick(["\n", "\0", " ", "\r\n", "{", "[\n"])),
};

/** Without its long texts. */
function small(line: string): string {
  return JSON.stringify(jsonOf(line) ?? {}, (_key, value: unknown) =>
    typeof value === "string" && value.length > 40 ? value.slice(0, 10) : value,
  );
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The ids in a line count up, the first by one less than the second. */
function countedIds(line: string, own: string, index: number): string {
  let place = 0;
  return line.replaceAll(uuid, (id) => {
    if (id === own) return id;
    place += 1;
    return `00000000-0000-4000-8000-${String(index + place).padStart(12, "0")}`;
  });
}

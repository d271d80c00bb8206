// Checks that the answers are right. A case with a wrong answer gets no numbers.
import { type ListAnswer, parseList } from "../test/truth/answer.ts";
import { tokensOfLarge } from "./commands.ts";
import { userHome } from "./homes/home.ts";
import type { PreparedCase } from "./prepared-case.ts";

export function wrongAnswers(prepared: PreparedCase, which: readonly string[]): string[] {
  return [
    ...(which.includes("list") ? wrongLists(prepared) : []),
    ...(which.some((name) => name.startsWith("list -a")) ? wrongWeek(prepared) : []),
    ...wrongTokens(prepared),
  ];
}

/** Checks plain `list`, which is measured, and `list -a` over all times, which reads every record. */
function wrongLists(prepared: PreparedCase): string[] {
  const live = expectedLive(prepared);
  const rest = new Map(prepared.home.sessions.map(({ id, outcome }) => [id, outcome]));
  return [
    ...compare("list", asked(prepared, "list", "--json"), live),
    ...compare(
      "list -a --since 9999d",
      asked(prepared, "list", "-a", "--since", "9999d", "--json"),
      new Map([...live, ...rest]),
    ),
    ...countLines("C list", prepared, [prepared.tools.list, userHome(prepared.folder)], live.size),
    ...countLines("Bun list", prepared, [prepared.tools.bare, userHome(prepared.folder)], live.size),
  ];
}

const weekMs = 7 * 86_400_000;

function wrongWeek(prepared: PreparedCase): string[] {
  const recent = prepared.home.sessions.filter(({ endedAt }) => endedAt > Date.now() - weekMs);
  const expected = new Map([...expectedLive(prepared), ...recent.map(({ id, outcome }) => [id, outcome] as const)]);
  const reference = (program: string): string[] => [program, "-a", userHome(prepared.folder)];
  return [
    ...compare("list -a", asked(prepared, "list", "-a", "--json"), expected),
    // The references print two more lines: cleared sessions and older sessions.
    ...countLines("C list -a", prepared, reference(prepared.tools.list), expected.size + 2),
    ...countLines("Bun list -a", prepared, reference(prepared.tools.bare), expected.size + 2),
  ];
}

const expectedLive = ({ live }: PreparedCase) => new Map(live.map(({ id, activity }) => [id, `running ${activity}`]));

function asked(prepared: PreparedCase, ...words: string[]): ListAnswer {
  return parseList(outputOf(prepared, [prepared.bin, ...words]));
}

function outputOf({ cwd, env }: PreparedCase, argv: string[]): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync(argv, { cwd, env, stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`bench: ${argv.join(" ")} exited with ${exitCode}: ${stderr}`);
  return stdout.toString();
}

function compare(what: string, answer: ListAnswer, expected: ReadonlyMap<string, string>): string[] {
  const told = answer.rows.map(
    ({ id, state, activity, outcome }) =>
      [id ?? "", activity === null ? (outcome ?? state) : `${state} ${activity}`] as const,
  );
  const wrong = told.filter(([id, word]) => expected.get(id) !== word);
  const ids = new Set(told.map(([id]) => id));
  const missing = [...expected.keys()].filter((id) => !ids.has(id)).length;
  const [first] = wrong;
  return [
    ...(answer.complete ? [] : [`${what}: not everything could be read`]),
    ...(missing === 0 ? [] : [`${what}: ${missing} of ${expected.size} sessions missing`]),
    ...(first === undefined
      ? []
      : [`${what}: ${wrong.length} wrong, the first ${first.join(" is ")}, not ${expected.get(first[0]) ?? "there"}`]),
  ];
}

/** The references must find the same sessions. */
function countLines(what: string, prepared: PreparedCase, argv: string[], expected: number): string[] {
  const lines = outputOf(prepared, argv).split("\n").length - 1;
  return lines === expected ? [] : [`${what}: ${lines} lines, ${expected} expected`];
}

export function wrongTokens(prepared: PreparedCase): string[] {
  const { large } = prepared.home;
  const tokens = tokensOfLarge(prepared);
  if (large === null || tokens === null) return [];
  const expected = [tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite].join(" ");
  const { tokens: told }: { tokens: typeof tokens } = JSON.parse(
    outputOf(prepared, [prepared.bin, "status", large.id, "--json"]),
  );
  const answers = {
    status: [told.input, told.output, told.cacheRead, told.cacheWrite].join(" "),
    "C tokens": outputOf(prepared, [prepared.tools.tokens, "-s", large.path]).trim().replace(/^\d+ /, ""),
  };
  return Object.entries(answers).flatMap(([who, sum]) => (sum === expected ? [] : [`${who}: ${sum}, not ${expected}`]));
}

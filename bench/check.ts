// Is the answer right? Numbers of a wrong one are worth nothing, so they are not shown.
import { type ListAnswer, parseList } from "../test/truth/answer.ts";
import { tokensOfLarge } from "./commands.ts";
import { userHome } from "./homes/home.ts";
import type { Stage } from "./stage.ts";

/** In words; none: every session is there, once, with the right status. */
export function wrongAnswers(stage: Stage, which: readonly string[]): string[] {
  return [
    ...(which.includes("list") ? wrongLists(stage) : []),
    ...(which.some((name) => name.startsWith("list -a")) ? wrongWeek(stage) : []),
    ...wrongTokens(stage),
  ];
}

/** Of all times at once, so that every record is looked at; and plain, as it is measured. */
function wrongLists(stage: Stage): string[] {
  const live = expectedLive(stage);
  const rest = new Map(stage.home.sessions.map(({ id, outcome }) => [id, outcome]));
  return [
    ...compare("list", asked(stage, "list", "--json"), live),
    ...compare(
      "list -a --since 9999d",
      asked(stage, "list", "-a", "--since", "9999d", "--json"),
      new Map([...live, ...rest]),
    ),
    ...countLines("C list", stage, [stage.tools.list, userHome(stage.folder)], live.size),
    ...countLines("Bun list", stage, [stage.tools.bare, userHome(stage.folder)], live.size),
  ];
}

const weekMs = 7 * 86_400_000;

function wrongWeek(stage: Stage): string[] {
  const recent = stage.home.sessions.filter(({ endedAt }) => endedAt > Date.now() - weekMs);
  const expected = new Map([...expectedLive(stage), ...recent.map(({ id, outcome }) => [id, outcome] as const)]);
  const reference = (program: string): string[] => [program, "-a", userHome(stage.folder)];
  return [
    ...compare("list -a", asked(stage, "list", "-a", "--json"), expected),
    // Two more: what was cleared, what is older.
    ...countLines("C list -a", stage, reference(stage.tools.list), expected.size + 2),
    ...countLines("Bun list -a", stage, reference(stage.tools.bare), expected.size + 2),
  ];
}

const expectedLive = ({ live }: Stage) => new Map(live.map(({ id, activity }) => [id, `running ${activity}`]));

function asked(stage: Stage, ...words: string[]): ListAnswer {
  return parseList(outputOf(stage, [stage.bin, ...words]));
}

function outputOf({ cwd, env }: Stage, argv: string[]): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync(argv, { cwd, env, stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`bench: ${argv.join(" ")} ended with ${exitCode}: ${stderr}`);
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

/** The references must have found the same sessions. */
function countLines(what: string, stage: Stage, argv: string[], expected: number): string[] {
  const lines = outputOf(stage, argv).split("\n").length - 1;
  return lines === expected ? [] : [`${what}: ${lines} lines, ${expected} expected`];
}

export function wrongTokens(stage: Stage): string[] {
  const { large } = stage.home;
  const tokens = tokensOfLarge(stage);
  if (large === null || tokens === null) return [];
  const expected = [tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite].join(" ");
  const { tokens: told }: { tokens: typeof tokens } = JSON.parse(
    outputOf(stage, [stage.bin, "status", large.id, "--json"]),
  );
  const answers = {
    status: [told.input, told.output, told.cacheRead, told.cacheWrite].join(" "),
    "C tokens": outputOf(stage, [stage.tools.tokens, "-s", large.path]).trim().replace(/^\d+ /, ""),
  };
  return Object.entries(answers).flatMap(([who, sum]) => (sum === expected ? [] : [`${who}: ${sum}, not ${expected}`]));
}

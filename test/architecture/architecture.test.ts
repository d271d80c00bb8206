// The architecture: allowed imports, forbidden code, and the required parts of every adapter.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, normalize, relative } from "node:path";
import { adapters } from "../../src/agents/registry.ts";

const root = join(import.meta.dir, "../..");

interface Source {
  path: string;
  text: string;
  /** Imported files of our own, from the root, and packages by name. */
  imports: string[];
}

function sources(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => {
      const path = join(folder, name);
      const text = readFileSync(join(root, path), "utf8");
      return { path, text, imports: importsOf(path, text) };
    });
}

const importPattern = /(?:^|[\s;])(?:import|export)\s[^"';]*?from\s*"([^"]+)"|(?<!")import\s*\(?\s*"([^"]+)"/g;

const importsOf = (path: string, text: string): string[] =>
  [...text.matchAll(importPattern)].map(([, from, plain]) => {
    const target = from ?? plain ?? "";
    return target.startsWith(".") ? normalize(join(dirname(path), target)) : target;
  });

/** Each layer, and the layers it may import besides itself. */
const layers: Record<string, readonly string[]> = {
  core: [],
  lib: [],
  sys: ["lib"],
  agents: ["core"],
  observe: ["core", "agents", "lib", "sys"],
  control: ["core", "agents", "observe", "lib", "sys"],
  words: ["core", "lib"],
  service: ["core", "agents", "observe", "control", "words", "lib", "sys"],
  demo: ["lib", "sys"],
  cli: ["service", "words", "core", "agents", "observe", "control", "demo", "lib", "sys"],
};

const layerOf = (path: string): string => relative("src", path).split("/")[0] ?? "";

const all = sources("src");

describe("imports", () => {
  test.each(Object.keys(layers))("of %s point one way", (layer) => {
    const wrong = all
      .filter(({ path }) => layerOf(path) === layer)
      .flatMap(({ path, imports }) =>
        imports
          .filter((target) => target.startsWith("src/"))
          .filter((target) => layerOf(target) !== layer && !layers[layer]?.includes(layerOf(target)))
          .map((target) => `${path} imports ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  /** The files of the command line that import more than types from a path below src. */
  const commandsImporting = (pattern: string): string[] =>
    all
      .filter(({ path }) => layerOf(path) === "cli" && !path.startsWith("src/cli/hidden/"))
      .filter(({ text }) =>
        new RegExp(`(?:^import (?!type )[^;]*?from |import\\()"\\.\\./(?:${pattern})`, "m").test(text),
      )
      .map(({ path }) => path);

  test("the command line calls control, observe and agents only through the service; hidden commands are no front door", () => {
    expect(commandsImporting("control/|agents/|observe/(?!failure\\.ts)")).toEqual([]);
    // Turns any error into a failure, for the file that a person names.
    expect(commandsImporting("observe/failure")).toEqual(["src/cli/compare.ts"]);
  });

  test("the command line uses types of core, failures and exit codes: rules are in the service", () => {
    expect(commandsImporting("core/(?!failure\\.ts|failure-kinds\\.ts|problem\\.ts)")).toEqual([]);
    expect(commandsImporting("core/")).not.toEqual([]);
  });

  test("every folder of src is a layer", () => {
    const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).sort()).toEqual(Object.keys(layers).sort());
  });

  test("a status is decided in core/derive.ts and nowhere else", () => {
    const decides = /status: \{\s*state: "(running|stopped|unknown)"|: Status = /;
    const deciding = all.filter(({ text }) => decides.test(text)).map(({ path }) => path);
    expect(deciding).toEqual(["src/core/derive.ts"]);
  });

  test("core and adapters are pure: no node:*, no bun, no globals of the machine", () => {
    const wrong = all
      .filter(({ path }) => ["core", "agents"].includes(layerOf(path)))
      .filter(({ text, imports }) => {
        const outside = imports.some((target) => !target.startsWith("src/"));
        return (
          outside ||
          /\b(process\.(env|pid|cwd|platform|argv)|Bun\.|Date\.now|Math\.random|new Date\(\)|setTimeout|fetch\()/.test(
            text,
          )
        );
      });
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test("Bun's own calls stay in src/sys", () => {
    const wrong = all
      .filter(({ path }) => layerOf(path) !== "sys")
      .filter(({ text, imports }) => imports.some((name) => /^bun(:|$)/.test(name)) || /\bBun\.\w+/.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

describe("no file has", () => {
  const everything = [...all, ...sources("test"), ...sources("scripts"), ...sources("bench")].filter(
    ({ path }) => !path.includes("node_modules"),
  );

  test("a bare catch", () => {
    expect(everything.filter(({ text }) => /catch\s*\{/.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test("a process.exit outside main.ts and the demo agent, which is a program of its own", () => {
    const exits = all.filter(
      ({ path, text }) => path !== "src/main.ts" && !path.startsWith("src/demo/") && /process\.exit\(/.test(text),
    );
    expect(exits.map(({ path }) => path)).toEqual([]);
  });

  test("a status decided by an agent's name", () => {
    const shared = all.filter(({ path }) => ["core", "observe", "control"].includes(layerOf(path)));
    expect(shared.filter(({ text }) => /agent === "/.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test("a signal handler or a printer in control or service: front doors have them", () => {
    const inner = all.filter(({ path }) => ["control", "service"].includes(layerOf(path)));
    const pattern = /process\.on\(|\bcontext\.(?:out|err)\b|writeOut|writeErr|sys\/stdin\.ts/;
    expect(inner.filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test("a type name that another file declares, too: one name has one meaning", () => {
    const declared = all.flatMap(({ path, text }) =>
      [...text.matchAll(/^(?:export )?(?:interface|class|type) ([A-Z]\w*)/gm)].map(([, name]) => ({ name, path })),
    );
    const byName = Map.groupBy(declared, ({ name }) => name);
    expect([...byName.values()].filter(({ length }) => length > 1)).toEqual([]);
    expect(byName.size).toBeGreaterThan(200);
  });

  test("a sentence for people in core, agents or observe: they give codes, and src/words has the sentences", () => {
    const quiet = all.filter(({ path }) => ["core", "agents", "observe"].includes(layerOf(path)));
    const sentence =
      /\b(?:why|reason|doubt|detail|message)\b(?:: [\w| ]+)?\s*[:=]\s*(["'`])(?:(?!\1).)* (?:(?!\1).)*\1/g;
    const found = quiet.flatMap(({ path, text }) => [...text.matchAll(sentence)].map(([words]) => `${path}: ${words}`));
    expect(found).toEqual([]);
  });

  test("a reason or a doubt inside of a text: without src/words it would read [object Object]", () => {
    const outside = all.filter(({ path }) => layerOf(path) !== "words");
    const printed = /\$\{[^}]*\b(?:status\.why|turn\.why|turn\.doubt|session\.reason|problem\.detail)\}/;
    expect(outside.filter(({ text }) => printed.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test("more than 400 lines", () => {
    expect(all.filter(({ text }) => text.split("\n").length > 400).map(({ path }) => path)).toEqual([]);
  });
});

describe("what a terminal gets", () => {
  const having = (pattern: RegExp): string[] => all.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

  test("comes from the printer; help and version, which are constants, from sys/write-early.ts", () => {
    expect(having(/process\.(?:stdout|stderr)\b(?! costs)|\bconsole\.|\bstdout\.write|process\.report/)).toEqual([]);
    expect(having(/Bun\.(?:stdout|stderr)/)).toEqual(["src/sys/write-early.ts"]);
    // A number that is not a file of ours: elsewhere writeSync gets what openSync has just given.
    expect(having(/writeSync\([12],|writeSync\(fd,.*written/).sort()).toEqual([
      "src/lib/atomic-file.ts",
      "src/sys/stdout.ts",
    ]);
    expect(having(/"\/dev\/(?:tty|stdout|stderr|fd\/)/)).toEqual([]);
  });

  test("no sequence of our own is made elsewhere: text with one in it would lose it", () => {
    expect(having(/\\(?:x1b|u001b|e)\[/).sort()).toEqual(["src/lib/width.ts", "src/sys/stdout.ts"]);
  });

  test("is shared with these children alone: the demo's own commands, and programs that agentctl becomes", () => {
    expect(having(/"inherit"/)).toEqual(["src/sys/spawn.ts"]);
    expect(having(/(?<!function )showCommand\(/)).toEqual(["src/cli/demo.ts"]);
    expect(having(/(?<!function )becomeProgram\(/).sort()).toEqual([
      "src/cli/attach.ts",
      "src/cli/hidden/exec-agent.ts",
      "src/cli/resume.ts",
    ]);
  });

  test("as JSON is cleaned before it is written: afterwards a sequence could take a quote along", () => {
    const commands = all.filter(({ path, text }) => layerOf(path) === "cli" && text.includes("JSON.stringify"));
    // The fingerprint of a watched list, and what a child hands to its parent.
    expect(commands.map(({ path }) => path).sort()).toEqual(["src/cli/hidden/read-store.ts", "src/cli/list.ts"]);
  });
});

describe("a file is opened", () => {
  const calls = (pattern: RegExp): string[] =>
    all.filter(({ path, text }) => layerOf(path) !== "demo" && pattern.test(text)).map(({ path }) => path);

  test("to be read by observe/files.ts alone; the others read /proc, locks, folders of our own, and a person's prompt", () => {
    expect(calls(/\breadFile(?:Sync)?\(|createReadStream|Bun\.file|from "node:fs\/promises"/).sort()).toEqual(
      [
        // /proc.
        ...[
          "src/observe/open-files.ts",
          "src/observe/mounts.ts",
          "src/observe/ports.ts",
          "src/observe/processes.linux.ts",
        ],
        "src/sys/trusted-folders.ts",
        // Its own function of this name: a person may well name a pipe, and Ctrl-C ends the waiting.
        "src/cli/prompt.ts",
      ].sort(),
    );
    expect(calls(/openSync\([^;\n]*(?:"r"|O_RDONLY)/).sort()).toEqual([
      "src/cli/prompt.ts",
      "src/cli/sweep.ts",
      // The prompt that it has just made.
      "src/control/start-agent.ts",
      "src/observe/files.ts",
      "src/sys/file-lock.ts",
      "src/sys/scratch.ts",
    ]);
    expect(calls(/copyFileSync\(/)).toEqual(["src/sys/sqlite.ts"]);
  });

  test("to be written only if it is new, or not through a link", () => {
    const writes = all
      .filter(({ path }) => layerOf(path) !== "demo")
      .flatMap(({ path, text }) =>
        [...text.matchAll(/openSync\(([^;]*?)\);/g)]
          .map(([, words = ""]) => ({ path, words }))
          .filter(({ words }) => !/"r"|O_RDONLY/.test(words)),
      );
    expect(writes.filter(({ words }) => !/"wx"|O_NOFOLLOW/.test(words))).toEqual([]);
    expect(writes.length).toBeGreaterThan(5);
    // Into a folder that was made for one command.
    expect(calls(/\b(?:writeFile|appendFile)(?:Sync)?\(/)).toEqual(["src/control/git/git-view.ts"]);
  });
});

test("src/lib has these files and no domain words", () => {
  const lib = all.filter(({ path }) => layerOf(path) === "lib");
  expect(lib.map(({ path }) => basename(path)).sort()).toEqual([
    "atomic-file.ts",
    "deadline.ts",
    "errors.ts",
    "jsonl.ts",
    "width.ts",
  ]);
  expect(lib.filter(({ text }) => /\b(session|agent|adapter|launch)\b/i.test(text)).map(({ path }) => path)).toEqual(
    [],
  );
});

describe("every adapter", () => {
  test.each(adapters.map(({ agent }) => agent))("%s has a note and captured cases", (agent) => {
    expect(existsSync(join(root, "src/agents", agent, "README.md"))).toBe(true);
    const cases = join(root, "test/fixtures", agent);
    const folders = existsSync(cases)
      ? readdirSync(cases).filter((name) => statSync(join(cases, name)).isDirectory())
      : [];
    expect(folders.length).toBeGreaterThan(0);
  });

  test("folder is in the registry, and every agent in the registry has a folder", () => {
    const folders = readdirSync(join(root, "src/agents"), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(folders.map(({ name }) => name).sort()).toEqual(adapters.map(({ agent }) => agent).sort());
  });
});

describe("the checks themselves can fail", () => {
  test("a floating promise is an error", () => {
    const folder = mkdtempSync(join(root, "test", "floating-"));
    try {
      const path = join(folder, "floating.ts");
      writeFileSync(
        path,
        "export async function late(): Promise<void> {}\n\nexport function run(): void {\n  late();\n}\n",
      );
      const { exitCode, stdout, stderr } = Bun.spawnSync(["node_modules/.bin/biome", "lint", path], { cwd: root });
      expect(`${stdout}${stderr}`).toContain("noFloatingPromises");
      expect(exitCode).not.toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
    // It reads the whole project for its types.
  }, 60_000);

  test("imports are found in every form that we use", () => {
    const text =
      'import { a } from "./a.ts";\nimport type { B } from "../core/b.ts";\nconst c = await import("./c.ts");\nexport type { D } from "node:fs";\nimport "x";\n';
    expect(importsOf("src/cli/z.ts", text)).toEqual(["src/cli/a.ts", "src/core/b.ts", "src/cli/c.ts", "node:fs", "x"]);
  });
});

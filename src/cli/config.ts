// agentctl config: the settings, and where each comes from.
import { exitCodes } from "../core/problem.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { readConfig, type Setting } from "../service/config.ts";
import { detailText } from "../words/problems.ts";
import { unexpected, usage } from "./arguments.ts";
import type { Command } from "./command.ts";
import { homeRelative, table, terminalOf } from "./render.ts";

export const config: Command = {
  usage: "agentctl config [show | path] [--json]",
  summary: "Show the settings and where each comes from, or the path of the configuration file.",
  notes: [
    "Edit the file to change a setting. Defaults for launch and run, which an option on the command line overrides:",
    '  {"defaults": {"permission": "edit", "claude": {"model": "opus"}, "codex": {"permission": "read"}}}',
    "Exit code 8: the file cannot be read, or has invalid values.",
  ].join("\n"),
  flags: [{ flag: "--json", help: "JSON output: path, exists, settings, faults" }],
  examples: [
    ["agentctl config", "all settings"],
    ["$EDITOR $(agentctl config path)", "change them"],
  ],
  async run(args, context) {
    const [what = "show", more] = args.words;
    if (more !== undefined) throw unexpected(more, "config");
    if (what !== "show" && what !== "path") throw usage(`config takes show or path, not ${what}`, "config");
    const config = readConfig(context.env);
    const found = { ...config, faults: config.faults.map(detailText) };
    if (what === "path") {
      context.out(args.has("--json") ? jsonLine({ path: found.path, exists: found.exists }) : `${found.path}\n`);
      return 0;
    }
    const columns = [{ title: "SETTING" }, { title: "FROM" }, { title: "VALUE" }];
    const origin = { default: "default", config: "config file", environment: "environment" };
    const rows = found.settings.map(({ key, value, from }) => [
      { text: key },
      { text: origin[from] },
      { text: value === null ? unsetText(key) : homeRelative(value, context) },
    ]);
    if (args.has("--json")) context.out(jsonLine(found));
    else {
      const path = homeRelative(found.path, context);
      context.out(`${path}${found.exists ? "" : " (does not exist)"}\n${table(columns, rows, terminalOf(context))}`);
    }
    for (const fault of found.faults) context.err(`agentctl: ${oneLine(found.path)}: ${oneLine(fault)}\n`);
    return found.faults.length === 0 ? 0 : exitCodes["cannot-tell"];
  },
};

const unsetText = (key: Setting["key"]): string =>
  key === "worktrees" ? "beside the repository" : "the agent's own setting";

// agentctl diff: what a session changed in its place since it began, committed or not.
import { beginningOf, patchSince } from "../control/changes.ts";
import { oneLine, plainText, someLines, someOf } from "../lib/width.ts";
import { placeOf } from "../observe/place.ts";
import { writtenSince } from "../observe/wanted.ts";
import type { Command } from "./command.ts";
import { lookAtRows } from "./sessions.ts";
import { oneRow } from "./status.ts";

export const diff: Command = {
  usage: "agentctl diff <ref> [--stat]",
  summary:
    "Shows what changed in the session's place since it began: commits, uncommitted and new files, as one patch.",
  notes: [
    "For a session that agentctl launched, since the commit that was noted then; for others since the last commit before its",
    "first message. A file that was last touched before it began is left out, and named. Others may have worked in the same",
    "place: then it says so, and the patch holds their changes, too. No program that the repository names is run: files that go",
    "through a filter (Git LFS) are shown as they are on disk.",
  ].join("\n"),
  flags: [{ flag: "--stat", help: "only which files, and how many lines" }],
  examples: [
    ["agentctl diff 3f2a1b9c", "the patch"],
    ["agentctl diff @last --stat", "the files"],
  ],
  async run(args, context) {
    const { row } = await oneRow(args.words, "diff", context);
    const beginning = await beginningOf(row.session, row.launch, context.env);
    const { id, startedAt } = row.session;
    const since = startedAt === null ? "all" : writtenSince(startedAt);
    const others = (await lookAtRows(context, since)).rows.filter(
      ({ session }) =>
        session.id !== id && placeOf(session.cwd) === beginning.place && (session.updatedAt ?? 0) > (startedAt ?? 0),
    );
    if (beginning.isGuessed)
      context.err(`agentctl: since ${beginning.commit.slice(0, 12)}, the last commit before it began\n`);
    const told = others.map(
      ({ session, ref }) => `${session.agent} ${ref} worked in the same place since; its changes are in here, too`,
    );
    for (const line of someLines(told, mostNamed)) context.err(`agentctl: ${line}\n`);
    const { patch, before, unshown } = await patchSince(beginning, context.env, args.has("--stat") ? ["--stat"] : []);
    if (before.length > 0)
      context.err(`agentctl: not in here, last touched before it began: ${plainText(someOf(before, mostNamed))}\n`);
    for (const text of unshown) context.err(`agentctl: ${oneLine(text)}\n`);
    // Bytes, because a patch that was cleaned would not apply.
    context.out(Buffer.from(patch));
    if (patch === "") context.err("agentctl: nothing changed\n");
    return 0;
  },
};

const mostNamed = 5;

// agentctl diff: prints the changes in a session's directory since the session began.
import { oneLine, plainText, someLines, someOf } from "../lib/width.ts";
import { diff as diffSession } from "../service/diff.ts";
import { noticeLines } from "../words/notices.ts";
import { referenceIn } from "./arguments.ts";
import type { Command } from "./command.ts";
import { callOf } from "./service-call.ts";

export const diff: Command = {
  usage: "agentctl diff REF [--stat]",
  summary: "Show what changed since a session started: commits, uncommitted and new files, as one patch.",
  notes: [
    "For a launched session the patch starts at the commit of the launch, for other sessions at the last commit before the",
    "first message. Files that were last changed before the session started are left out and named. If other sessions worked",
    "in the same directory, diff says so, and the patch contains their changes, too. diff runs no program that the repository",
    "names: files with a filter (Git LFS) are shown as they are on disk.",
  ].join("\n"),
  flags: [{ flag: "--stat", help: "file names and numbers of lines only" }],
  examples: [
    ["agentctl diff 3f2a1b9c", "the patch"],
    ["agentctl diff @last --stat", "the changed files of the newest launch"],
  ],
  async run(args, context) {
    const format = args.has("--stat") ? "stat" : "patch";
    const answer = await diffSession(referenceIn(args.words, "diff"), format, callOf(context));
    const { guessedCommit, others, patch, before, unshown } = answer;
    const told = [
      ...(guessedCommit === null ? [] : [`since ${guessedCommit.slice(0, 12)}, the last commit before it started`]),
      ...someLines(
        others.map(
          ({ session, ref }) => `${session.agent} ${ref} worked in the same directory; its changes are included`,
        ),
        mostNamed,
      ),
      ...(before.length === 0
        ? []
        : [`left out, last changed before it started: ${plainText(someOf(before, mostNamed))}`]),
      ...unshown.flatMap(noticeLines).map(oneLine),
      ...(patch === "" ? ["nothing changed"] : []),
    ];
    for (const line of told) context.err(`agentctl: ${line}\n`);
    // A buffer, because the printer removes control characters from a string, and the patch would not apply.
    context.out(Buffer.from(patch));
    return 0;
  },
};

const mostNamed = 5;

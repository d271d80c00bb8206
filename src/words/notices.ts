// The sentence of every notice.

import type { Notice, NoticeCode, NoticeFacts } from "../core/notice.ts";
import { someLines, someOf } from "../lib/width.ts";
import { effectText, ownSettingText } from "./agent-start.ts";
import { confirmationText } from "./confirmations.ts";
import { failureMessage } from "./failures.ts";
import { keepReasonsText } from "./keep-reasons.ts";
import { nameOwnerText, occupantText } from "./occupants.ts";
import { reasonText, spareText } from "./reasons.ts";

/** Most notices are one line. */
export const noticeLines = (notice: Notice): string[] => [linesOf(notice.code, notice.facts)].flat();

const linesOf = <C extends NoticeCode>(code: C, facts: NoticeFacts[C]): string | string[] => sentences[code](facts);

const mostOccupants = 5;
const mostPaths = 5;

const sentences: { readonly [C in NoticeCode]: (facts: NoticeFacts[C]) => string | string[] } = {
  "also-active": ({ occupants }) =>
    someLines(occupants.map(occupantText), mostOccupants).map((text) => `same directory: ${text}`),
  "clean-up-failed": ({ failure }) => `clean-up after the launch failed: ${failureMessage(failure)}`,
  "empty-session-left": ({ command, detail }) => `an empty session was left behind: ${command} failed: ${detail}`,
  "exit-hook-not-run": ({ launch, failure }) =>
    `could not run --on-exit of launch ${launch}: ${failureMessage(failure)}`,
  "filter-not-run": ({ filter, count }) =>
    `${count === 1 ? "1 file goes" : `${count} files go`} through the filter ${filter}, which agentctl does not run: shown as on disk`,
  "hooks-postponed": ({ failure }) => `could not run the hooks of earlier launches: ${failureMessage(failure)}`,
  "inherited-permission": ({ permission, from, effect }) =>
    `--permission ${permission}, ${from === "config" ? "from config.json" : "as it was launched"}: ${effectText(effect)}`,
  "left-running": ({ processes }) => processLines("left running", processes),
  "names-not-shown": ({ paths }) => `not in here: files whose names are not UTF-8: ${someOf(paths, mostPaths)}`,
  "name-dropped": ({ name, by }) => `continued without its name ${name}: ${nameOwnerText(by)}`,
  "not-stopped": ({ failure }) => `not stopped: ${failureMessage(failure)}`,
  "note-not-saved": ({ failure }) => `could not save its name and labels: ${failureMessage(failure)}`,
  "own-permission": ({ agent, own, hasArguments }) =>
    `${agent}: ${ownSettingText(own)}${hasArguments ? "; the arguments after -- may change that" : ""}`,
  "removal-undone": ({ path }) => `an earlier removal of ${path} was interrupted; the worktree is restored`,
  "server-sessions": ({ confirmation }) => confirmationText(confirmation),
  "start-hook-not-run": ({ failure }) => `could not run --on-start: ${failureMessage(failure)}`,
  "still-running": ({ processes }) => processLines("still running", processes),
  "status-unknown": ({ called, why }) => `${called} is unknown (${reasonText(why)}); still waiting`,
  "stop-unconfirmed": ({ why }) => `cannot tell whether it was stopped: ${reasonText(why)}`,
  "submodules-not-shown": ({ paths }) => `not in here: uncommitted changes in submodules: ${someOf(paths, mostPaths)}`,
  "unknown-left-out": ({ refs }) => `left out, because their status is unknown: ${refs.join(", ")}`,
  "worktree-kept": ({ path, branch, reasons }) => `${path} was kept, on branch ${branch}: ${keepReasonsText(reasons)}`,
  "worktree-removed": ({ path }) => `removed the new worktree ${path}`,
  "worktree-setup": ({ path }) => `setting up ${path}`,
  "worktree-without-files": ({ path, root, count }) =>
    `the worktree ${path} does not contain ${count === 1 ? "1 uncommitted file" : `${count} uncommitted files`} of ${root}`,
  "worktree-without-submodules": ({ path }) =>
    `${path}: its submodules are empty: --setup 'git submodule update --init' fills them`,
};

const mostProcesses = 20;

const processLines = (word: string, processes: NoticeFacts["left-running"]["processes"]): string[] =>
  someLines(
    processes.map(({ pid, name, why }) => `${word}: pid ${pid} ${name}: ${spareText(why)}`),
    mostProcesses,
  );

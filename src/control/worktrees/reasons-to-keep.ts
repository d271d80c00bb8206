// Decides whether a worktree may be removed: work that would be lost, and sessions and processes in it.
import type { KeepReason } from "../../core/keep-reason.ts";
import type { Contents, Standing, WorktreeFacts } from "./worktree-facts.ts";

/** These reasons prevent a removal even if a person wants to discard everything. */
const finalCodes = ["main", "locked", "session", "more-sessions", "inside", "modules", "out-of-reach"];

export const isFinal = ({ code }: KeepReason): boolean => finalCodes.includes(code);

/** No reasons: it may be removed. */
export function reasonsToKeep(facts: WorktreeFacts): KeepReason[] {
  const { branch, isMain, isLocked, presence, contents, inside, isMerged, isPushed, sessions, standing } = facts;
  const live = sessions.filter(({ status }) => status.state !== "stopped");
  // If the folder is gone, its branch still has the commits, and is kept.
  const needsHolder = presence.kind === "there" || branch === null;
  const inIt: KeepReason[] = [
    ...live
      .slice(0, maxNamed)
      .map(({ agent, id, status: { state } }) => ({ code: "session" as const, agent, id, state })),
    ...(live.length > maxNamed ? [{ code: "more-sessions" as const, count: live.length - maxNamed }] : []),
  ];
  if (isMain) return [{ code: "main" }, ...inIt];
  return [
    ...(isLocked ? [{ code: "locked" as const }] : []),
    ...inIt,
    ...inside.map((obstacle) => ({ code: "inside" as const, ...obstacle })),
    // The processes of a session are covered by the session.
    ...(live.length > 0 ? [] : standingReasons(standing)),
    ...(presence.kind === "out-of-reach" ? [{ ...presence, code: presence.kind }] : []),
    ...(contents.known ? lostWith(contents) : [{ code: "unknown" as const, ...contents.why }]),
    ...(needsHolder && !isMerged && !isPushed
      ? [{ code: "commits" as const, ahead: facts.ahead, commit: facts.commit }]
      : []),
  ];
}

function lostWith({ dirty, hidden, unseen, unfinished, hasModules }: Contents & { known: true }): KeepReason[] {
  const found: (KeepReason & { paths: readonly string[] })[] = [
    { code: "uncommitted", paths: dirty },
    { code: "hidden", paths: hidden },
    // Files in checked-out submodules belong to other repositories.
    { code: "unseen", paths: hasModules ? [] : unseen },
  ];
  return [
    ...found.filter(({ paths }) => paths.length > 0),
    ...(hasModules ? [{ code: "modules" as const }] : []),
    ...unfinished.map((work) => ({ code: "unfinished" as const, ...work })),
  ];
}

const maxNamed = 3;

function standingReasons(standing: readonly Standing[]): KeepReason[] {
  // If the caller is in it, this command runs in it, too: report only the caller.
  const named = standing.filter(({ role }) => role !== "self" || standing.every((each) => each.role !== "caller"));
  return [
    ...named.slice(0, maxNamed).map((each) => ({ code: "standing" as const, ...each })),
    ...(named.length > maxNamed ? [{ code: "more-standing" as const, count: named.length - maxNamed }] : []),
  ];
}

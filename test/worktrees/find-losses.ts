// Finds lost work: every byte of work that existed before must exist afterwards, and git must show it.

import { join } from "node:path";
import { type Content, contentAt, type Inventory, type Worktree } from "./inventory.ts";

export interface Loss {
  /** What was lost, without what makes it one of many. */
  kind: string;
  text: string;
}

export function lossesBetween(before: Inventory, after: Inventory): Loss[] {
  const missing = [...before.worktrees.values()].flatMap((worktree) => [
    ...filesMissing(worktree, before, after),
    ...entriesMissing(worktree, before, after),
  ]);
  return [...commitsMissing(before, after), ...missing];
}

/** A commit that had a ref needs one still: the HEAD of a worktree may move on at any moment. */
function commitsMissing(before: Inventory, after: Inventory): Loss[] {
  return [...before.shown.commits].flatMap(([id, subject]) => {
    if (after.inRefs.commits.has(id)) return [];
    if (!after.shown.commits.has(id)) return [commitLoss(id, subject, "is in no ref and no worktree")];
    if (!before.inRefs.commits.has(id)) return [];
    return [commitLoss(id, subject, "had a ref; now only the HEAD of a worktree holds it")];
  });
}

/** A file that is committed is as safe as its commit. */
function filesMissing(worktree: Worktree, before: Inventory, after: Inventory): Loss[] {
  const places = placesOf(worktree, after);
  return [...worktree.files].flatMap(([name, content]) => {
    if (before.shown.others.has(content.blob) || after.shown.others.has(content.blob)) return [];
    if (places.some(({ files }) => files.get(name)?.blob === content.blob)) return [];
    return [fileLoss(join(worktree.path, name), content)];
  });
}

function entriesMissing(worktree: Worktree, before: Inventory, after: Inventory): Loss[] {
  const places = placesOf(worktree, after);
  return [...worktree.index].flatMap(([blob, name]) => {
    if (before.shown.others.has(blob) || after.shown.others.has(blob)) return [];
    if (places.some(({ index, files }) => index.has(blob) || files.get(name)?.blob === blob)) return [];
    return [{ kind: "index entry", text: `${name} of the index of ${worktree.path} is gone` }];
  });
}

/** Where the worktree is now: at its path or where it was moved to, and known to git as well as before. */
const placesOf = (worktree: Worktree, after: Inventory): Worktree[] =>
  [...after.worktrees.values()].filter(
    (now) =>
      (now.path === worktree.path || (worktree.works && now.gitDir === worktree.gitDir)) &&
      (now.works || !worktree.works) &&
      (now.isListed || !worktree.isListed),
  );

/** What a person or an agent did while agentctl ran, written down by themselves when it was done. */
export interface Journal {
  commits: { id: string; subject: string }[];
  files: { worktree: string; name: string; content: Content }[];
}

export function lossesOfJournal({ commits, files }: Journal, after: Inventory): Loss[] {
  // A removal that was killed may have moved the worktree: git lists where it is now. No two deeds share a name.
  const isPlace = ({ path, works, isListed }: Worktree, worktree: string): boolean =>
    path === worktree || (works && isListed);
  const holds = (worktree: string, name: string, blob: string): boolean =>
    after.shown.others.has(blob) ||
    [...after.worktrees.values()].some((now) => isPlace(now, worktree) && now.files.get(name)?.blob === blob);
  return [
    ...commits
      .filter(({ id }) => !after.shown.commits.has(id))
      .map(({ id, subject }) => commitLoss(id, subject, "is in no ref and no worktree")),
    ...files
      .filter(({ worktree, name, content }) => !holds(worktree, name, content.blob))
      .map(({ worktree, name, content }) => fileLoss(join(worktree, name), content)),
  ];
}

const commitLoss = (id: string, subject: string, what: string): Loss => ({
  kind: kindOf(subject),
  text: `commit ${id.slice(0, 10)} "${subject}" ${what}`,
});

function fileLoss(path: string, content: Content): Loss {
  const rest = contentAt(path)?.blob === content.blob ? "is there, but in no worktree that git knows" : "is gone";
  return { kind: kindOf(content.text), text: `${path} ("${content.text}") ${rest}` };
}

/** Git's own texts name branches and commits. */
function kindOf(text: string): string {
  if (/^(On|index on) .*: /.test(text)) return "autostash or stash";
  return text.startsWith("<<<<<<<") ? "file with a conflict" : text.replace(/ \d+$/, "");
}

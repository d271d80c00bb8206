// Confirmations in English: what is to be confirmed, the remedy where nobody can be asked, and the question.
import type { Confirmation } from "../core/confirmation.ts";
import { counted, type Sentences, sentenceFor } from "./reasons.ts";

export const confirmationText = (confirmation: Confirmation): string => sentenceFor(sentences, confirmation);

const sentences: Sentences<Confirmation> = {
  "weak-link": ({ ref, pid, link }) => `cannot be sure which process has ${ref}: pid ${pid ?? "?"} ${linkText(link)}`,
  "server-sessions": ({ ref, server, others }) => {
    const named = others.map((other) => `${other.agent} ${other.ref} (${other.status})`).join(", ");
    return `the server of ${ref} (${server}) also serves ${otherSessions(others)}, which would end with it: ${named}`;
  },
  "many-sessions": ({ count }) => `${count} sessions would be stopped`,
  "many-launches": ({ count }) => `${count} sessions would be started`,
  "remove-launches": () => "nothing was removed: confirmation required",
  "remove-worktrees": () => "nothing was removed: confirmation required",
};

const linkText = (link: "argv" | "cwd" | null): string =>
  link === null ? "has not named its session" : `matches only by its ${link === "argv" ? "arguments" : "directory"}`;

export const otherSessions = ({ length }: readonly unknown[]): string => counted(length, "other session");

export function confirmationHint({ code }: Confirmation): string {
  if (code === "weak-link") return "use -y to continue anyway; nothing was done";
  if (code === "server-sessions") return "use -y to stop them all; nothing was stopped";
  return "add -y to confirm";
}

export const confirmationQuestion = (confirmation: Confirmation): string => sentenceFor(questions, confirmation);

const questions: Sentences<Confirmation> = {
  "weak-link": (link) => `${confirmationText(link)}. Continue?`,
  "server-sessions": (server) => `${confirmationText(server)}. Stop them all?`,
  "many-sessions": ({ count }) => `Stop ${count} sessions?`,
  "many-launches": ({ count }) => `Start ${count} sessions?`,
  "remove-launches": ({ count }) => (count === 0 ? "Remove the cache?" : `Remove the files of ${count} launches?`),
  "remove-worktrees": ({ count }) => (count === 1 ? "Remove it?" : `Remove these ${count}?`),
};

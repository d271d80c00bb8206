// Confirmations in English: what is to be confirmed, and the question about it.
import type { Confirmation } from "../core/confirmation.ts";

export function confirmationText(confirmation: Confirmation): string {
  switch (confirmation.code) {
    case "weak-link":
      return `cannot be sure which process has ${confirmation.ref}: pid ${confirmation.pid ?? "?"} ${linkText(confirmation.link)}`;
    case "server-sessions": {
      const { ref, server, others } = confirmation;
      const named = others.map((other) => `${other.agent} ${other.ref} (${other.status})`).join(", ");
      return `the server of ${ref} (${server}) also serves ${otherSessions(others)}, which would end with it: ${named}`;
    }
    case "many-sessions":
      return `${confirmation.count} sessions would be stopped`;
    case "many-launches":
      return `${confirmation.count} sessions would be started`;
    case "remove-launches":
    case "remove-worktrees":
      return "nothing was removed: confirmation required";
  }
}

const linkText = (link: "argv" | "cwd" | null): string =>
  link === null ? "has not named its session" : `matches only by its ${link === "argv" ? "arguments" : "directory"}`;

export const otherSessions = ({ length }: readonly unknown[]): string =>
  `${length} other session${length === 1 ? "" : "s"}`;

export function confirmationHint({ code }: Confirmation): string {
  if (code === "weak-link") return "use -y to continue anyway; nothing was done";
  if (code === "server-sessions") return "use -y to stop them all; nothing was stopped";
  return "add -y to confirm";
}

export function confirmationQuestion(confirmation: Confirmation): string {
  const { code } = confirmation;
  if (code === "many-sessions") return `Stop ${confirmation.count} sessions?`;
  if (code === "many-launches") return `Start ${confirmation.count} sessions?`;
  if (code === "remove-launches")
    return confirmation.count === 0 ? "Remove the cache?" : `Remove the files of ${confirmation.count} launches?`;
  if (code === "remove-worktrees")
    return confirmation.count === 1 ? "Remove it?" : `Remove these ${confirmation.count}?`;
  return `${confirmationText(confirmation)}. ${code === "server-sessions" ? "Stop them all" : "Continue"}?`;
}

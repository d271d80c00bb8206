// Questions that an act asks before it goes on. They are data: each front door asks them in its own way.

/** An answer names the question by its key, so that a question about other sessions is asked again. */
export type Confirmation = { key: string } & (
  | { code: "weak-link"; ref: string; pid: number | null; link: "argv" | "cwd" | null }
  | { code: "many-sessions"; count: number }
  | { code: "server-sessions"; ref: string; server: string; others: { agent: string; ref: string; status: string }[] }
  | { code: "many-launches"; count: number }
  | { code: "remove-launches"; count: number }
  | { code: "remove-worktrees"; count: number }
);

/** The keys of the questions that were answered with yes. "all": yes to everything, like -y. */
export type Confirmed = "all" | readonly string[];

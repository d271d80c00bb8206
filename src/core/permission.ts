// What an agent may do, as codes. words/agent-start.ts makes the sentences.

/** The effect of a permission, or of the agent's own setting. */
export type PermissionEffect =
  | "approved-only"
  | "cannot-edit"
  | "changes-nothing"
  | "denies-changes"
  | "edits-allowed-commands"
  | "edits-and-runs"
  | "edits-approved-commands"
  | "edits-below"
  | "edits-below-allowed-commands"
  | "edits-below-and-runs"
  | "edits-below-checked-commands"
  | "edits-below-kept-approvals"
  | "edits-below-no-commands"
  | "edits-below-simple-commands"
  | "edits-in-sandbox"
  | "edits-no-commands"
  | "everything"
  | "everything-by-default"
  | "everything-not-denied"
  | "everything-not-as-root"
  | "own-command-rules"
  | "own-sandbox"
  | "plans-first"
  | "plans-only"
  | "reads-below"
  | "reads-below-and-web"
  | "reads-everywhere"
  | "reads-files-and-web"
  | "read-only-sandbox"
  | "settings-decide"
  | "settings-only"
  | "settings-unreadable"
  | "model-decides"
  | "no-sandbox"
  | "workspace-sandbox";

/** What an agent may do without --permission, judging by its own settings. */
export interface OwnSetting {
  /** The agent's own word for it; null: it has none, or is not set. */
  mode: string | null;
  /** null: the mode is unknown to agentctl. */
  effect: PermissionEffect | null;
  /** It may do everything. */
  isBypass: boolean;
  /** Without an interface it may enter its plan mode, and leave it with every permission. */
  mayLeavePlan?: true;
  /** A file of settings that cannot be read may allow everything. */
  unread?: { path: string; detail: string };
}

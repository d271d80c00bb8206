// The session that a process was started with: by our tag, or in its arguments.
import type { AgentProcess } from "./found.ts";
import type { Link } from "./session.ts";

/** The session that the process was started with: our tag, else its arguments. Stale once it moved on to another one. */
export function givenId({
  row,
  detail,
  rules,
  ...rest
}: AgentProcess): { id: string; link: Link; source: string } | null {
  const folder = `/proc/${row.identity.pid}`;
  const assigned = assignedId({ row, detail, rules, ...rest });
  if (assigned !== null) return { id: assigned, link: "assigned", source: `${folder}/environ` };
  const id = detail.argv === null ? null : rules.argvId(detail.argv);
  return id === null ? null : { id, link: "argv", source: `${folder}/cmdline` };
}

/** Our tag counts only in the kernel session it was given to: what a tool started elsewhere inherited it. */
function assignedId(process: AgentProcess): string | null {
  const env = process.detail.env;
  if (env === null || env["AGENTCTL_TAG_SID"] !== String(process.row.session)) return null;
  const tag = env["AGENTCTL_TAG_SESSION"];
  const prefix = `${process.rules.agent}:`;
  const id = tag?.startsWith(prefix) ? tag.slice(prefix.length) : null;
  return id !== null && process.rules.isId(id) ? id : null;
}

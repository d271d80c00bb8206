// The session that a process was started with: by our tag, or in its arguments.
import type { AgentProcess } from "./matches.ts";
import type { Link } from "./session.ts";

/** Our tag counts before the arguments. The id is stale once the process has switched to another session. */
export function givenId(process: AgentProcess): { id: string; link: Link; source: string } | null {
  const { row, detail, rules } = process;
  const folder = `/proc/${row.identity.pid}`;
  const assigned = assignedId(process);
  if (assigned !== null) return { id: assigned, link: "assigned", source: `${folder}/environ` };
  const id = detail.argv === null ? null : rules.argvId(detail.argv);
  return id === null ? null : { id, link: "argv", source: `${folder}/cmdline` };
}

/** Our tag counts only in the kernel session of the launch: elsewhere it was inherited through a tool. */
function assignedId({ row, detail: { env }, rules }: AgentProcess): string | null {
  if (env === null || env["AGENTCTL_TAG_SID"] !== String(row.session)) return null;
  const tag = env["AGENTCTL_TAG_SESSION"];
  const prefix = `${rules.agent}:`;
  const id = tag?.startsWith(prefix) ? tag.slice(prefix.length) : null;
  return id !== null && rules.isId(id) ? id : null;
}

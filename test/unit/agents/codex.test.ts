// The arguments of Codex: which word is a command, and which session it names.
import { expect, test } from "bun:test";
import { codex } from "../../../src/agents/codex/index.ts";

const id = "01a1e1c1-092a-7951-96f0-07f6e0ecb1f5";
const detail = (argv: string[]) => ({ argv, exe: null, cwd: null, env: {}, lockedFiles: [] }) as never;

test.each([
  [["codex"], "agent"],
  [["codex", "login"], "helper"],
  [["codex", "--model", "login"], "agent"],
  [["codex", "--", "login"], "agent"],
  [["codex", "app-server", "--listen", "unix://"], "server"],
  [["codex", "app-server", "daemon"], "helper"],
] as const)("%p is a process of the role %s", (argv, role) => {
  expect(codex.role("codex", detail([...argv]))).toBe(role);
});

test.each([
  [["codex", "exec", "--json", "resume", id, "-"], id],
  [["codex", "-m", "x", "e", "resume", id], id],
  [["codex", "exec", "--", "resume", id], null],
  [["codex", "resume", id], null],
])("the arguments %p name the session %p", (argv, session) => {
  expect(codex.argvId(argv)).toBe(session);
});

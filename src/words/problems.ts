// The sentence for every problem. It is printed after the path that has the problem.
import type { Problem, ProblemDetail, SettingShape } from "../core/problem.ts";
import { type Sentences, sentenceFor } from "./reasons.ts";

export const problemText = ({ detail }: Pick<Problem, "detail">): string => detailText(detail);

export const detailText = (detail: ProblemDetail): string => sentenceFor(details, detail);

/** A problem in JSON output. Scripts depend on these fields. */
export const problemJson = ({ code, agent, source, detail }: Problem) => ({
  ...{ code, agent, source },
  detail: detail.code,
  message: detailText(detail),
});

const expectations: Record<SettingShape, string> = {
  "absolute-folder": "must be the absolute path of a directory",
  "agent-defaults": 'must be an object: {"model": "…", "permission": "…"}',
  defaults: "must be an object",
  folders: "must be a list of directories",
  homes: 'must be an object: {"homes": {"<agent>": ["<directory>"]}}',
  "inside-agents": 'must be "guarded" or "free"',
  permission: 'must be "read", "edit" or "bypass"',
  text: "must be a string",
};

const details: Sentences<ProblemDetail> = {
  "system-error": ({ text }) => text,
  "answer-not-json": ({ text }) => `the answer is not JSON: ${text}`,
  "answer-unknown-shape": () => "the answer has an unknown format",
  "answer-http-status": ({ status }) => `the server answered with HTTP status ${status}`,
  "another-id-inside": () => "the session id inside differs from the id in its name",
  "changed-while-read": () => "it changed while it was read",
  compressed: () => "it is compressed, and agentctl reads no compressed files",
  "environment-hidden": () => "hidden by the kernel (a restricted program)",
  "hidden-process": () => "it exists, but is hidden on this system (hidepid)",
  "keeps-changing": () => "it keeps changing while it is read",
  "no-answer": ({ request }) => (request === "" ? "no answer" : `no answer to the request "${request}"`),
  "no-answer-in-time": () => "the server does not answer in time",
  "no-owner-recorded": () => "it does not say which process has the session",
  "no-uids": () => "it contains no user ids",
  "not-a-lock": () => "not a lock of agentctl",
  "not-a-note": () => "not a launch note",
  "not-an-object": () => "not a JSON object",
  "not-asked": () => "the server could not be asked",
  "not-shown-by-lsof": () => "not shown by lsof",
  "of-other-user": ({ uid }) => `it belongs to another user (uid ${uid}), so it is not used`,
  "other-users-process": () => "another user's process",
  "part-unread": ({ part, detail }) => `its ${part.replace("-", " ")} cannot be read: ${detailText(detail)}`,
  "password-needed": () => "the server wants a password that its environment does not show",
  "reader-failed": ({ text }) => `the reading process failed: ${text}`,
  "record-unknown-shape": () => "it is not a record of this agent in a known format",
  "server-busy": () => "the server accepts no connections",
  "server-refused": ({ text }) => (text === "" ? "the server refused" : `the server refused: ${text}`),
  "server-suspended": () => "the server is suspended",
  "setting-invalid": ({ setting, expected }) => `${setting} ${expectations[expected]}`,
  "setting-not-absolute": ({ setting, path }) => `${setting}: not an absolute path: "${path}"`,
  "setting-of-unknown-agent": ({ setting, agent }) => `${setting}: no agent is called ${agent}`,
  "setting-unknown": ({ setting }) => `${setting} is not a setting`,
  "store-slow": () => "its file system does not answer in time",
  "store-too-large": () => "it contains more than agentctl reads",
  "unknown-platform": ({ platform }) => `agentctl cannot read the process table of ${platform}`,
  "unknown-shape": () => "it has an unknown format",
  "unnamed-record": ({ detail }) => `a record that may belong to it cannot be read: ${detailText(detail)}`,
  "writable-by-others": () => "other users can write to it, so it is not used; chmod 700 it",
};

// Removes paths of this host and long texts from a captured file, and keeps its structure.

export interface Redaction {
  /** The folder of the temporary test world. */
  world: string;
  /** Where the agents are installed. */
  agents: string;
}

const longest = 160;

/** JSON (lines or one document) or plain text. */
export function redactLines(text: string, redaction: Redaction): string {
  return text
    .split("\n")
    .map((line) => (line.startsWith("{") ? redactJson(line, redaction) : redactText(line, redaction)))
    .join("\n");
}

/** Replaces paths of this host, also in the form that Claude Code uses for folder names. */
export function redactText(text: string, { world, agents }: Redaction): string {
  const slug = (path: string): string => path.replace(/[^A-Za-z0-9]/g, "-");
  return text
    .replaceAll(`${world}/home`, "/home/user")
    .replaceAll(slug(`${world}/home`), slug("/home/user"))
    .replaceAll(world, "/home/user/.world")
    .replaceAll(slug(world), slug("/home/user/.world"))
    .replaceAll(agents, "/opt/agents")
    .replaceAll(/linux:[0-9a-f]{32}:/g, `linux:${"0".repeat(32)}:`)
    .replaceAll(/"machineID": "[0-9a-f]+"/g, '"machineID": "0"')
    .replaceAll(/"pidNs": ?\d+/g, '"pidNs": 4026531836')
    .replaceAll(/"ipcToken": ?"[0-9a-f]+"/g, '"ipcToken": "0"')
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:1");
}

function redactJson(line: string, redaction: Redaction): string {
  let value: unknown;
  try {
    value = JSON.parse(redactText(line, redaction));
  } catch (error) {
    // The agent was killed while it wrote this line.
    if (error instanceof SyntaxError) return redactText(line, redaction).slice(0, longest);
    throw error;
  }
  return JSON.stringify(redactValue(withoutInstructions(value)));
}

const redacted = (value: unknown): string => `[redacted ${JSON.stringify(value).length} chars]`;

/** A prompt of the schedule, or the notice that its background command ended (tests need the ids in it). */
const isOurs = (text: string): boolean => text.includes(" ;; ") || text.startsWith("<task-notification>");

/** Parsers recognize texts that no person typed by their first tag. */
const leadingTag = (text: string): string => /^<[a-z_-]+>/.exec(text)?.[0] ?? "";

function redactValue(value: unknown): unknown {
  if (typeof value === "string")
    return value.length > longest && !isOurs(value) ? leadingTag(value) + redacted(value) : value;
  if (Array.isArray(value)) return value.map(redactValue);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactValue(inner)]));
  return value;
}

/** Replaces the agent's own instructions by their length. */
function withoutInstructions(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const record: Record<string, unknown> = { ...value };
  const type = String(record["type"]);
  if (type.startsWith("api-request"))
    for (const key of ["shape", "params", "message"]) if (key in record) record[key] = redacted(record[key]);
  if (type === "attachment") {
    const attachment = record["attachment"];
    if (typeof attachment === "object" && attachment !== null && "type" in attachment)
      record["attachment"] = { type: attachment.type, rest: redacted(attachment) };
    if ("rendered" in record) record["rendered"] = redacted(record["rendered"]);
  }
  if (type === "world_state") record["payload"] = redacted(record["payload"]);
  const payload = record["payload"];
  if (typeof payload === "object" && payload !== null) {
    const inner: Record<string, unknown> = { ...payload };
    if (inner["role"] === "developer") inner["content"] = redacted(inner["content"]);
    for (const key of ["base_instructions", "dynamic_tools", "tools", "collaboration_mode"])
      if (inner[key]) inner[key] = redacted(inner[key]);
    record["payload"] = inner;
  }
  return record;
}

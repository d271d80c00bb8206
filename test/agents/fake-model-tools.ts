// Which of the offered tools runs shell commands, and what it wants to be called with.
import { asObject, type JsonObject, type Tool } from "./fake-model-parts.ts";

const shells = [
  "bash",
  "Bash",
  "run_shell_command",
  "exec_command",
  "shell_command",
  "shell",
  "local_shell",
  "exec",
  "execute_command",
  "execute_bash",
  "run_commands",
  "run_command",
  "run_in_terminal",
  "developer__shell",
  "terminal",
];

export function shellCall(tools: readonly Tool[], command: string): { name: string; input: JsonObject } | null {
  const named = shells.flatMap((name) => tools.find((tool) => tool.name === name) ?? []);
  const tool = named[0] ?? tools.find(({ name }) => /bash|shell|exec/i.test(name));
  return tool === undefined ? null : { name: tool.name, input: inputFor(tool, command) };
}

function inputFor({ schema }: Tool, command: string): JsonObject {
  const properties = asObject(schema["properties"]);
  const isList = (key: string): boolean => asObject(properties[key])["type"] === "array";
  const input: JsonObject =
    "commands" in properties
      ? { commands: isList("commands") ? [command] : command }
      : "cmd" in properties && !("command" in properties)
        ? { cmd: isList("cmd") ? ["bash", "-lc", command] : command }
        : { command: isList("command") ? ["bash", "-lc", command] : command };
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  for (const key of required) if (!(key in input)) input[key] = plainValue(asObject(properties[key]));
  return input;
}

function plainValue(schema: JsonObject): unknown {
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  const type = String(schema["type"]).toLowerCase();
  if (type === "boolean") return false;
  if (type === "number" || type === "integer") return 600_000;
  return type === "array" ? [] : "run a command";
}

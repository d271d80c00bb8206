// Parses the demo agent's options. Exits with an error message if they are invalid.
import { writeErr } from "../sys/stdout.ts";

const flags = ["-p", "--no-announce"];
const valued = "--session-id --resume --parent --permission --model --script --announce-after --fail-start".split(" ");

export function readArguments(args: readonly string[]): { options: ReadonlyMap<string, string>; rest: string[] } {
  const options = new Map<string, string>();
  const rest: string[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index] ?? "";
    if (flags.includes(argument)) options.set(argument, "");
    else if (valued.includes(argument)) {
      index += 1;
      options.set(argument, args[index] ?? fail(`${argument} needs a value`, 2));
    } else if (argument.startsWith("-")) fail(`unknown option ${argument}`, 2);
    else rest.push(argument);
  }
  return { options, rest };
}

export function fail(text: string, status: 1 | 2): never {
  writeErr(`demo-agent: ${text}\n`);
  process.exit(status);
}

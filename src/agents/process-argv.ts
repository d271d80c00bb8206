// Reads the arguments of a running process.

/** The value of a flag, given as `--flag value` or `--flag=value` before `--`. */
export function flagValue(argv: readonly string[], ...flags: string[]): string | null {
  for (const [index, argument] of argv.entries()) {
    if (argument === "--") return null;
    for (const flag of flags) {
      if (argument === flag) return argv[index + 1] ?? null;
      if (argument.startsWith(`${flag}=`)) return argument.slice(flag.length + 1);
    }
  }
  return null;
}

/** The arguments of a program before `--`, without options and their values. */
export function plainWords(argv: readonly string[], flagsWithValue: readonly string[]): string[] {
  const found: string[] = [];
  for (let index = 1; index < argv.length; index += 1) {
    const argument = argv[index] ?? "";
    if (argument === "--") return found;
    if (flagsWithValue.includes(argument)) index += 1;
    else if (!argument.startsWith("-") || argument === "-") found.push(argument);
  }
  return found;
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The script that Node runs, and the arguments after it; null: another program. */
export function nodeScript(
  argv: readonly string[],
  runtimes = /^(node|nodejs)$/,
): { script: string; own: readonly string[] } | null {
  if (!runtimes.test(baseName(argv[0] ?? ""))) return null;
  let index = 1;
  while (argv[index]?.startsWith("-")) index += /^(-r|--require|--import|--loader)$/.test(argv[index] ?? "") ? 2 : 1;
  return { script: argv[index] ?? "", own: argv.slice(index + 1) };
}

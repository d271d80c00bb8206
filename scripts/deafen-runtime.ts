// Changes a copy of the Bun runtime so that it ignores its own environment variables. A compiled program obeys them like `bun`:
// BUN_OPTIONS=--preload=FILE runs FILE inside agentctl, and BUN_BE_BUN=1 turns agentctl into `bun`. Bun 1.4 has no build option
// against it. The runtime passes each name, a C string in the executable, to getenv(3). If the first byte of a name is NUL, it
// matches no variable. Only single bytes are overwritten, so nothing moves.

/** The build fails if one of these is missing: then this version of Bun looks up its variables in another way. */
const expectedNames = [
  ...["BUN_BE_BUN", "BUN_OPTIONS", "BUN_INSPECT", "BUN_INSPECT_CONNECT_TO", "BUN_INSPECT_PRELOAD"],
  ...["BUN_BYTECODE_DIGEST_OUT", "BUN_BYTECODE_ORDER_OUT", "BUN_BYTECODE_ORDER_NAMES_OUT"],
  ...["BUN_CRASH_REPORT_URL", "BUN_ENABLE_CRASH_REPORTING", "BUN_FEATURE_FLAG_NO_ORPHANS", "BUN_TCC_OPTIONS"],
  ...["BUN_RUNTIME_TRANSPILER_CACHE_PATH", "BUN_TMPDIR", "BUN_TRACE", "NODE_CHANNEL_FD"],
];

/** JavaScriptCore's option that replaces the source of functions by the text of a file. */
const functionOverrides = "\0JSC_functionOverrides\0";

/** Where the runtime compares each variable with "BUN_JSC_", byte by byte, and the jump that skips all other variables. */
const optionPrefix: Readonly<Record<string, { code: RegExp; jumpAt: number; always: number }>> = {
  // cmp byte [r], 'B'; jne next; cmp byte [r+1], 'U'; jne next → the first jne becomes jmp.
  x64: { code: /\x80[\x38-\x3f]\x42\x75.{1,2}\x80[\x78-\x7f]\x01\x55\x75/gs, jumpAt: 3, always: 0xeb },
};

export interface Deafened {
  names: string[];
  /** The variables that this runtime still obeys. */
  remaining: string[];
}

/** Changes `executable`, an ELF file, in place. */
export function deafenRuntime(executable: Buffer, architecture: string): Deafened {
  // In latin1 one byte is one character: positions in the text are positions in the file.
  const text = executable.toString("latin1");
  const names = [...text.matchAll(/(?<=\0)(?:BUN_[A-Z0-9_]+|NODE_CHANNEL_FD)(?=\0)/g)];
  const found = new Set(names.map(([name]) => name));
  const missing = expectedNames.filter((name) => !found.has(name));
  if (missing.length > 0) throw new Error(`this Bun does not look up ${missing.join(", ")} as Bun 1.4.4 does`);
  for (const { index } of names) executable[index] = 0;

  const option = text.indexOf(functionOverrides);
  if (option === -1) throw new Error("this Bun has no option functionOverrides, or it has another name");
  executable[option + "\0JSC_".length] = 0;

  const prefix = optionPrefix[architecture];
  if (prefix === undefined) return { names: [...found], remaining: ["BUN_JSC_*"] };
  const places = [...text.matchAll(prefix.code)];
  const [place] = places;
  if (place === undefined || places.length > 1)
    throw new Error(`this Bun compares BUN_JSC_ in ${places.length} places instead of one`);
  executable[place.index + prefix.jumpAt] = prefix.always;
  return { names: [...found], remaining: [] };
}

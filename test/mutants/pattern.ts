// Finds code by its syntax: comments, formatting, the file and, with holes, names may change without losing the place.
//
// A pattern is an expression or a statement. `$name` is a hole for any expression or statement; the same
// hole twice means the same code twice. `$$$` alone in a list stands for any arguments, elements or statements. A replacement may use
// the holes of its pattern.
import { parseSync } from "oxc-parser";

export interface Source {
  path: string;
  text: string;
}

interface Node extends Record<string, unknown> {
  type: string;
  start: number;
  end: number;
}

interface Found {
  node: Node;
  source: Source;
  /** The names of all functions around it. */
  inside: readonly string[];
}

/** Every node of all sources, by type. */
export type Code = ReadonlyMap<string, readonly Found[]>;

export interface Place {
  source: Source;
  start: number;
  end: number;
  holes: ReadonlyMap<string, string>;
}

export function parseCode(sources: readonly Source[]): Code {
  const code = new Map<string, Found[]>();
  for (const source of sources) {
    const visit = (value: unknown, inside: readonly string[]): void => {
      if (Array.isArray(value)) for (const one of value) visit(one, inside);
      if (!isNode(value)) return;
      const found = code.get(value.type) ?? [];
      code.set(value.type, found);
      found.push({ node: value, source, inside });
      const name = functionName(value);
      for (const child of Object.values(value)) visit(child, name === null ? inside : [...inside, name]);
    };
    visit(parse(source.path, source.text), []);
  }
  return code;
}

/** Every place that fits the pattern, inside functions of that name if one is given. */
export function findPlaces(code: Code, pattern: string, functionAround: string | null): Place[] {
  const wanted = parsePattern(pattern);
  return (code.get(wanted.type) ?? []).flatMap(({ node, source, inside }) => {
    if (functionAround !== null && !inside.includes(functionAround)) return [];
    const holes = new Map<string, string>();
    return fits(wanted, node, source.text, holes) ? [{ source, start: node.start, end: node.end, holes }] : [];
  });
}

/** The whole text with the replacement in the place. */
export function replaceIn({ source, start, end, holes }: Place, replacement: string): string {
  const put = replacement.replace(/\$(\w+)/g, (hole) => holes.get(hole) ?? hole);
  return source.text.slice(0, start) + put + source.text.slice(end);
}

function parsePattern(pattern: string): Node {
  const expression = parseSync("pattern.ts", `(async () => (${pattern}))`, options);
  // A function and a loop around a statement allow `return`, `await` and `continue` in it.
  const node =
    expression.errors.length === 0
      ? at(expression.program, "body", 0, "expression", "body")
      : at(
          parse("pattern.ts", `async () => { for (;;) { ${pattern} } };`),
          ..."body.0.expression.body.body.0.body.body.0".split("."),
        );
  if (!isNode(node)) throw new Error(`not an expression or a statement: ${pattern}`);
  return node;
}

function parse(path: string, text: string): unknown {
  const { program, errors } = parseSync(path, text, options);
  if (errors.length > 0) throw new Error(`cannot parse ${path}: ${errors[0]?.message}\n${text.slice(0, 200)}`);
  return program;
}

const options = { preserveParens: false };

const at = (value: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((node, key) => (node as Record<string | number, unknown>)[key], value);

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

/** The name that a function has by its declaration, or by the constant, method or property that holds it. */
function functionName(node: Node): string | null {
  const named =
    node.type === "FunctionDeclaration" || node.type === "VariableDeclarator"
      ? node["id"]
      : node.type === "MethodDefinition" || node.type === "Property"
        ? node["key"]
        : null;
  return isNode(named) && named.type === "Identifier" ? (named["name"] as string) : null;
}

function holeIn(value: unknown): string | null {
  const node = isNode(value) && value.type === "ExpressionStatement" ? value["expression"] : value;
  const name = isNode(node) && node.type === "Identifier" ? (node["name"] as string) : "";
  return name.startsWith("$") ? name : null;
}

function fits(wanted: unknown, found: unknown, text: string, holes: Map<string, string>): boolean {
  const hole = holeIn(wanted);
  if (hole !== null && isNode(found)) {
    const code = text.slice(found.start, found.end);
    const before = holes.get(hole);
    holes.set(hole, before ?? code);
    return before === undefined || before === code;
  }
  if (Array.isArray(wanted)) {
    if (wanted.length === 1 && holeIn(wanted[0]) === "$$$") return Array.isArray(found);
    return (
      Array.isArray(found) &&
      wanted.length === found.length &&
      wanted.every((one, index) => fits(one, found[index], text, holes))
    );
  }
  if (typeof wanted !== "object" || wanted === null) return wanted === found;
  if (typeof found !== "object" || found === null) return false;
  const [a, b] = [wanted as Record<string, unknown>, found as Record<string, unknown>];
  return Object.keys(a).every((key) => position.has(key) || fits(a[key], b[key], text, holes));
}

const position: ReadonlySet<string> = new Set(["start", "end", "range", "loc", "raw"]);

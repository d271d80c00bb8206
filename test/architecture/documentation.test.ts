// The documentation names only files that exist, and the index of decisions is complete.
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dir, "../..");
const pages = ["", "docs", "docs/decisions"].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

test.each(pages)("%s: every link leads to a file", (page) => {
  const links = [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) => link);
  expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
});

test.each(pages)("%s: every path in the repository exists", (page) => {
  const paths = [...textOf(page).matchAll(/`((?:src|test|scripts|bench|docs)\/[\w./-]+)`/g)].map(
    ([, path = ""]) => path,
  );
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test("ARCHITECTURE.md: every file below src exists", () => {
  const paths = [
    ...textOf("ARCHITECTURE.md").matchAll(
      /\b((?:core|agents|observe|control|service|words|cli|sys|lib)\/[\w/-]+\.ts)/g,
    ),
  ];
  expect(paths.map(([path]) => path).filter((path) => !existsSync(join(root, "src", path)))).toEqual([]);
});

test("the index of decisions lists every decision", () => {
  const index = textOf("docs/decisions/README.md");
  const decisions = readdirSync(join(root, "docs/decisions")).filter((name) => /^\d{4}-.*\.md$/.test(name));
  expect(decisions.filter((name) => !index.includes(`(${name})`))).toEqual([]);
});

const textOf = (page: string): string => readFileSync(join(root, page), "utf8");

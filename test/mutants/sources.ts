// The product's source files.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import type { Source } from "./pattern.ts";

export const readSources = (repository: string): Source[] =>
  [...new Glob("src/**/*.ts").scanSync(repository)].map((path) => ({
    path,
    text: readFileSync(join(repository, path), "utf8"),
  }));

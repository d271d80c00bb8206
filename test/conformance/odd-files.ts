// What may stand where a file or a folder should be.
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";

export interface OddFile {
  name: string;
  make(path: string): void;
}

const inPlaceOfAny: OddFile[] = [
  { name: "a FIFO", make: fifo },
  { name: "a loop of links", make: (path) => symlinkSync(path, path) },
  { name: "a link to a device", make: (path) => symlinkSync("/dev/zero", path) },
  {
    name: "a link to a FIFO",
    make: (path) => {
      fifo(`${path}.fifo`);
      symlinkSync(`${path}.fifo`, path);
    },
  },
];

const isRoot = process.getuid?.() === 0;

/** Root may read everything, so that there the folder below stands for what cannot be read. */
const withoutPermission = (make: (path: string) => void): OddFile[] =>
  isRoot
    ? []
    : [
        {
          name: "one without permission",
          make: (path) => {
            make(path);
            chmodSync(path, 0);
          },
        },
      ];

export const oddRecords: readonly OddFile[] = [
  ...inPlaceOfAny,
  { name: "a folder", make: (path) => mkdirSync(path) },
  ...withoutPermission((path) => writeFileSync(path, "{}")),
];

export const oddFolders: readonly OddFile[] = [
  ...inPlaceOfAny,
  { name: "a file", make: (path) => writeFileSync(path, "not a folder") },
  ...withoutPermission((path) => mkdirSync(path)),
];

export function removeOdd(path: string): void {
  for (const each of [path, `${path}.fifo`]) rmSync(each, { recursive: true, force: true });
}

function fifo(path: string): void {
  const { exitCode } = Bun.spawnSync(["mkfifo", path]);
  if (exitCode !== 0) throw new Error(`mkfifo ${path} ended with ${exitCode}`);
}

// Reads a file and does nothing with it, in agentctl's runtime.
//
//   read FILE       1 MB at a time into one buffer (readSync)
//   read -w FILE    the whole file at once (readFileSync)
import { closeSync, openSync, readFileSync, readSync } from "node:fs";

const isWhole = process.argv[2] === "-w";
const path = process.argv[isWhole ? 3 : 2] ?? "";
console.log(isWhole ? readFileSync(path).length : inPieces());

function inPieces(): number {
  const file = openSync(path, "r");
  const buffer = Buffer.allocUnsafe(1024 * 1024);
  let all = 0;
  for (let got = -1; got !== 0; all += got) got = readSync(file, buffer, 0, buffer.length, null);
  closeSync(file);
  return all;
}

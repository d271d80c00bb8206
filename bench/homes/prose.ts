// Makes filler text that looks like words and code, escaped for a JSON string. It is cut only between lines, so that no escape
// sequence is split.
import type { Dice } from "../../test/truth/random.ts";

const words =
  "the of a session reads file test that when with returns value error line must parse const function await import from status process record if else for return number string true false null each never only last first".split(
    " ",
  );
const shapes = ['"', "()", "{}", "=> ", "// ", "/", ".ts", ": ", "[0]", "\\u00e9"];
const wantedBytes = 1 << 20;

export class Prose {
  readonly #text: string;
  readonly #lines: number[] = [];

  constructor(readonly dice: Dice) {
    let text = "";
    while (text.length < wantedBytes) {
      this.#lines.push(text.length);
      const length = 4 + dice.below(14);
      const line = Array.from({ length }, () => (dice.chance(0.25) ? dice.pick(shapes) : dice.pick(words))).join(" ");
      text += `${line.replaceAll('"', '\\"')}\\n`;
    }
    this.#text = text;
  }

  /** At least `bytes` long, and less than a line more. */
  text(bytes: number): string {
    const from = this.#lines[this.dice.below(this.#lines.length)] ?? 0;
    if (from + bytes < this.#text.length) return this.#text.slice(from, this.#lineFrom(from + bytes));
    return this.#text.slice(from) + this.text(bytes - (this.#text.length - from));
  }

  #lineFrom(place: number): number {
    let [low, high] = [0, this.#lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#lines[middle] ?? 0) < place) low = middle + 1;
      else high = middle;
    }
    return this.#lines[low] ?? this.#text.length;
  }
}

/** How many neighbours share the work between them; FULL=1 does all of it. */
const sharers = process.env["FULL"] === "1" ? 1 : 12;

/** A part of the damages, another one for each of the captured cases: together they see all of them. */
export function* share<T>(all: Iterable<T>, index: number): Generator<T> {
  let number = index;
  for (const one of all) {
    if (number % sharers === 0) yield one;
    number += 1;
  }
}

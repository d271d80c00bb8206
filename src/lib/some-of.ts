// The first few of many names, and how many more there are: what a person reads must not grow with the machine.

export const someOf = (names: readonly string[], most: number): string =>
  [...names.slice(0, most), ...(names.length > most ? [`and ${names.length - most} more`] : [])].join(", ");

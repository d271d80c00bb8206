// What a person would see: the few terminal functions that Claude Code's and Codex's interfaces use, on a grid of cells.

export interface Screen {
  write(text: string): void;
  /** The visible rows, right-trimmed. */
  text(): string;
}

/** `reply` receives what a real terminal would send back (cursor position, device attributes, colours). */
export function createScreen(columns: number, rows: number, reply: (text: string) => void): Screen {
  let grid = blankRows(rows);
  let row = 0;
  let column = 0;
  let saved = { row: 0, column: 0 };
  let top = 0;
  let bottom = rows - 1;
  let rest = "";
  let other: string[][] | null = null;

  function blankRows(count: number): string[][] {
    return Array.from({ length: count }, () => []);
  }
  const clampRow = (value: number): number => Math.max(0, Math.min(rows - 1, value));
  const clampColumn = (value: number): number => Math.max(0, Math.min(columns - 1, value));
  const lineAt = (index: number): string[] => grid[index] ?? [];

  function scrollUp(count: number, from: number): void {
    for (let i = 0; i < count; i += 1) {
      grid.splice(from, 1);
      grid.splice(bottom, 0, []);
    }
  }
  function scrollDown(count: number, from: number): void {
    for (let i = 0; i < count; i += 1) {
      grid.splice(bottom, 1);
      grid.splice(from, 0, []);
    }
  }
  function lineFeed(): void {
    if (row === bottom) scrollUp(1, top);
    else row = clampRow(row + 1);
  }
  function put(character: string): void {
    if (column >= columns) {
      column = 0;
      lineFeed();
    }
    const line = lineAt(row);
    while (line.length < column) line.push(" ");
    line[column] = character;
    column += 1;
  }
  function eraseLine(mode: number): void {
    const line = lineAt(row);
    if (mode === 0) line.length = Math.min(line.length, column);
    else if (mode === 2) line.length = 0;
    else for (let i = 0; i <= column && i < line.length; i += 1) line[i] = " ";
  }
  function eraseScreen(mode: number): void {
    if (mode >= 2) grid = blankRows(rows);
    if (mode === 0) {
      eraseLine(0);
      for (let i = row + 1; i < rows; i += 1) grid[i] = [];
    }
    if (mode === 1) {
      eraseLine(1);
      for (let i = 0; i < row; i += 1) grid[i] = [];
    }
  }
  function alternate(on: boolean): void {
    if (on && other === null) {
      other = grid;
      grid = blankRows(rows);
    } else if (!on && other !== null) {
      grid = other;
      other = null;
    }
  }
  function control(prefix: string, parameters: number[], final: string): void {
    const first = parameters[0] ?? 0;
    const count = Math.max(1, first);
    if (prefix === "?") {
      if ((final === "h" || final === "l") && (first === 1049 || first === 47)) alternate(final === "h");
      if (final === "u") reply("\x1b[?0u");
      return;
    }
    if (prefix === ">") {
      if (final === "c") reply("\x1b[>0;10;1c");
      if (final === "q") reply("\x1bP>|fake(1)\x1b\\");
      return;
    }
    if (prefix !== "") return;
    if (final === "A") row = clampRow(row - count);
    if (final === "B" || final === "e") row = clampRow(row + count);
    if (final === "C" || final === "a") column = clampColumn(column + count);
    if (final === "D") column = clampColumn(column - count);
    if (final === "E" || final === "F") {
      row = clampRow(row + (final === "E" ? count : -count));
      column = 0;
    }
    if (final === "G" || final === "`") column = clampColumn(count - 1);
    if (final === "d") row = clampRow(count - 1);
    if (final === "H" || final === "f") {
      row = clampRow(count - 1);
      column = clampColumn(Math.max(1, parameters[1] ?? 1) - 1);
    }
    if (final === "J") eraseScreen(first);
    if (final === "K") eraseLine(first);
    if (final === "L" && row >= top && row <= bottom) scrollDown(count, row);
    if (final === "M" && row >= top && row <= bottom) scrollUp(count, row);
    if (final === "S") scrollUp(count, top);
    if (final === "T") scrollDown(count, top);
    if (final === "P") lineAt(row).splice(column, count);
    if (final === "@") lineAt(row).splice(column, 0, ...Array.from({ length: count }, () => " "));
    if (final === "X") for (let i = 0; i < count; i += 1) if (lineAt(row)[column + i]) lineAt(row)[column + i] = " ";
    if (final === "r") {
      top = clampRow(count - 1);
      bottom = clampRow((parameters[1] ?? rows) - 1);
      row = 0;
      column = 0;
    }
    if (final === "s") saved = { row, column };
    if (final === "u") ({ row, column } = saved);
    if (final === "n" && first === 6) reply(`\x1b[${row + 1};${column + 1}R`);
    if (final === "n" && first === 5) reply("\x1b[0n");
    if (final === "c") reply("\x1b[?62;22c");
  }

  /** How many characters of `text` were understood; 0: an escape sequence is not complete yet. */
  function consume(text: string): number {
    const csi = /^\x1b\[([?<=>]?)([0-9;:]*)[ !"#$%&'*+,\-./]*([@-~])/.exec(text);
    if (csi) {
      const parameters = (csi[2] ?? "").split(";").map((value) => Number.parseInt(value, 10) || 0);
      control(csi[1] ?? "", parameters, csi[3] ?? "");
      return csi[0].length;
    }
    const osc = /^\x1b[\]P_^X]([\s\S]*?)(?:\x07|\x1b\\)/.exec(text);
    if (osc) {
      const colour = /^(1[01]);\?/.exec(osc[1] ?? "");
      if (colour) reply(`\x1b]${colour[1]};rgb:0000/0000/0000\x1b\\`);
      return osc[0].length;
    }
    if (/^\x1b(?:$|\[[?<=>]?[0-9;: !"#$%&'*+,\-./]*$|[\]P_^X])/.test(text)) return 0;
    const short = /^\x1b(?:[()*+#%][\s\S]|([\s\S]))/.exec(text);
    if (short) {
      if (short[1] === "7") saved = { row, column };
      if (short[1] === "8") ({ row, column } = saved);
      if (short[1] === "M") {
        if (row === top) scrollDown(1, top);
        else row = clampRow(row - 1);
      }
      if (short[1] === "D") lineFeed();
      return short[0].length;
    }
    const character = String.fromCodePoint(text.codePointAt(0) ?? 32);
    if (character === "\r") column = 0;
    else if (character === "\n") lineFeed();
    else if (character === "\b") column = clampColumn(column - 1);
    else if (character === "\t") column = clampColumn((Math.floor(column / 8) + 1) * 8);
    else if (character >= " ") put(character);
    return character.length;
  }

  return {
    write(text) {
      rest += text;
      let used = 0;
      while (used < rest.length) {
        const length = consume(rest.slice(used, used + 8192));
        if (length === 0) break;
        used += length;
      }
      rest = rest.slice(used);
    },
    text: () =>
      grid
        .map((line) =>
          line
            .map((cell) => (cell === undefined || cell === "\u00a0" ? " " : cell))
            .join("")
            .trimEnd(),
        )
        .join("\n")
        .trimEnd(),
  };
}

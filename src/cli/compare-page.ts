// The comparison as one self-contained page: bars, and the patches side by side. Everything that comes from outside is escaped.
import { plainText } from "../lib/width.ts";
import { type Compared, comparedJson } from "../service/compare.ts";
import { checkWord } from "./compare.ts";
import { shortCount, shortDuration } from "./render.ts";

export function comparePage(group: string, compared: readonly Compared[]): string {
  const facts = compared.map((each) => ({ each, json: comparedJson(each) }));
  const bars: [title: string, value: (index: number) => number | null, text: (value: number) => string][] = [
    ["Time", (index) => facts[index]?.json.wallMs ?? null, shortDuration],
    ["Tokens", (index) => facts[index]?.json.tokens?.total ?? null, shortCount],
    ["Cost", (index) => facts[index]?.json.costUsd ?? null, (value) => `$${value.toFixed(2)}`],
    ["Lines changed", (index) => sumOf(compared[index]), String],
    ["Files", (index) => compared[index]?.changes?.files ?? null, String],
    ["Commits", (index) => compared[index]?.changes?.commits ?? null, String],
  ];
  const heads = facts.map(({ each, json }) => {
    const check =
      each.check === null
        ? ""
        : `<span class="${each.check.status === 0 ? "good" : "bad"}">${escaped(checkWord(each.check))}</span>`;
    return `<th>${escaped(json.name ?? json.ref)}<small>${escaped([json.agent, json.model].filter((word) => word !== null).join(" "))}</small><small class="${escaped(json.status)}">${escaped(json.status)} ${check}</small></th>`;
  });
  const rows = bars.map(([title, value, text]) => {
    const most = Math.max(...compared.map((_, index) => value(index) ?? 0), 0);
    const cells = compared.map((_, index) => {
      const own = value(index);
      if (own === null) return "<td>not known</td>";
      const width = most === 0 ? 0 : Math.round((own / most) * 100);
      return `<td>${escaped(text(own))}<div class="bar" style="width:${width}%"></div></td>`;
    });
    return `<tr><th>${escaped(title)}</th>${cells.join("")}</tr>`;
  });
  const patches = compared.map(({ patch }) => `<td><pre>${patch === null ? "not known" : patchHtml(patch)}</pre></td>`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<title>${escaped(group)}</title><style>${style}</style></head><body>
<h1>${escaped(group)}</h1>
<table><thead><tr><td></td>${heads.join("")}</tr></thead><tbody>
${rows.join("\n")}
<tr class="patches"><th>Patch</th>${patches.join("")}</tr>
</tbody></table></body></html>
`;
}

const sumOf = (each: Compared | undefined): number | null =>
  each?.changes == null ? null : each.changes.added + each.changes.removed;

const longestPatch = 400_000;

function patchHtml(patch: string): string {
  const lines = plainText(patch.slice(0, longestPatch))
    .split("\n")
    .map((line) => {
      const kind = line.startsWith("+")
        ? "add"
        : line.startsWith("-")
          ? "del"
          : line.startsWith("@@") || line.startsWith("diff ")
            ? "at"
            : "";
      return kind === "" ? escaped(line) : `<span class="${kind}">${escaped(line)}</span>`;
    });
  return `${lines.join("\n")}${patch.length > longestPatch ? "\n… cut" : ""}`;
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text: string): string => plainText(text).replace(/[&<>"']/g, (character) => entities[character] ?? "");

const style = `body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff}table{border-collapse:collapse}
th,td{padding:.4em .8em;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}small{display:block;font-weight:normal;color:#666}
.bar{height:.5em;background:#4a7;margin-top:.2em}pre{max-height:60vh;max-width:60em;overflow:auto;font-size:12px}
.add{color:#160}.del{color:#a11}.at{color:#07a}.good{color:#160}.bad,.failed,.cut-off,.interrupted{color:#a11}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}th,td{border-color:#444}small{color:#999}.add{color:#7c7}.del{color:#f88}}`;

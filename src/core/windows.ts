// Programs with windows. A session may have started one, but a person may be working in it now.
import type { ProcessRow } from "./process.ts";
import type { WindowKind } from "./reason.ts";

/** As the kernel names processes: 15 characters at most. */
const names = {
  terminal:
    "xterm uxterm urxvt urxvtd rxvt st foot footclient kitty alacritty wezterm-gui ghostty konsole yakuake guake tilda tilix terminator terminology contour rio hyper tabby warp warp-terminal xfce4-terminal mate-terminal lxterminal qterminal gnome-terminal- kgx ptyxis ptyxis-agent cool-retro-term Terminal iTerm2",
  browser:
    "firefox firefox-bin firefox-esr librewolf waterfox zen zen-bin chrome google-chrome chromium chromium-browse brave brave-browser msedge microsoft-edge opera vivaldi vivaldi-bin epiphany epiphany-browse falkon qutebrowser konqueror Safari",
  editor:
    "code code-insiders code-oss codium vscodium cursor windsurf zed zed-editor zeditor sublime_text gedit gnome-text-edit kate kwrite mousepad pluma xed geany gvim emacs emacs-gtk emacs-x emacs-pgtk idea pycharm webstorm goland clion rider rubymine phpstorm android-studio lapce obsidian typora evince okular eog gimp inkscape libreoffice soffice.bin nautilus dolphin thunar",
};

const kinds = new Map<string, WindowKind>();
for (const kind of ["terminal", "browser", "editor"] as const)
  for (const name of names[kind].split(" ")) kinds.set(name, kind);

/** Libraries of the toolkits, as /proc/PID/maps names them. Not libX11: ffmpeg and others are linked with it, and show nothing. */
const toolkits = /\/(libgtk-[34]|libgtk-x11-2|libQt[56](Gui|Widgets)|libtk\d|libawt_xawt)[^/]*$/m;

/** Variables that say where a program shows its windows, and one that says that it shows none. */
export const displayVariables = ["DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"] as const;

/** The kind of program with a window; null: no such program. `readMaps` is called only if there is a display. */
export function windowKind(row: ProcessRow, readMaps: (row: ProcessRow) => string): WindowKind | null {
  const known = kinds.get(row.name);
  if (known !== undefined) return known;
  const env = row.detail?.env ?? {};
  const hasDisplay =
    Boolean(env["DISPLAY"] || env["WAYLAND_DISPLAY"]) && !/^(offscreen|minimal)/.test(env["QT_QPA_PLATFORM"] ?? "");
  return hasDisplay && toolkits.test(readMaps(row)) ? "other" : null;
}

/** True for programs that were started without windows: browsers and office programs in tests, emacs as an interpreter. */
export const isHeadless = ({ name, detail }: ProcessRow): boolean =>
  /headless/.test(name) || (detail?.argv ?? []).some((argument) => /^--?(headless|batch)(=|$)/.test(argument));

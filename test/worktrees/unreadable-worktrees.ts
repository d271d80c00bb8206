// Problems that keep git from reading a worktree, or agentctl from removing it.
import { chmodSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Choices } from "./random-work.ts";
import { unmountedDisk, unreadableFolder } from "./test-repository.ts";

export const troubles: Choices = {
  "its disk is not mounted": [
    3,
    ({ world, site, dice }) => {
      const hidden = dice.chance(0.3) ? site.path : dirname(site.path);
      if (world.area.startsWith(hidden) || world.repository.startsWith(hidden)) return false;
      const inside = world.sites.filter(({ path }) => path.startsWith(`${hidden}/`) || path === hidden);
      if (inside.some(({ state }) => state !== "plain")) return false;
      for (const each of inside) {
        world.write(join(each.path, "on-the-disk"), "file on a disk that is not mounted");
        each.state = "hidden";
      }
      const place = hidden === site.path ? "empty" : dice.pick(["missing", "empty"] as const);
      world.hiddenWork.push(unmountedDisk(world, hidden, place));
      return true;
    },
  ],
  "moved by hand": [
    1,
    ({ world, site }) => {
      // The world opens closed folders by their paths, so a closed folder must not move.
      if (existsSync(join(site.path, "unreadable"))) return false;
      world.write(join(site.path, "moved"), "file in a worktree that was moved by hand");
      renameSync(site.path, `${site.path}-moved`);
      site.state = "hidden";
      return true;
    },
  ],
  "removed by hand": [
    1,
    ({ world, site }) => {
      const inside =
        world.hiddenWork.length > 0 || existsSync(join(site.path, ".claude")) || existsSync(join(site.path, "ignored"));
      if (inside) return false;
      rmSync(site.path, { recursive: true });
      site.state = "hidden";
      return true;
    },
  ],
  "in an unreadable folder": [
    1,
    ({ world, site }) => {
      const parent = dirname(site.path);
      const inside = world.sites.filter(({ path }) => path.startsWith(`${parent}/`));
      if (world.repository.startsWith(`${parent}/`) || inside.some(({ state }) => state !== "plain")) return false;
      for (const each of inside) {
        world.write(join(each.path, "closed"), "worktree in an unreadable folder");
        each.state = "hidden";
      }
      world.hiddenWork.push(unreadableFolder(parent));
      return true;
    },
  ],
  "its index is damaged": [
    1,
    ({ world, site }) => {
      world.write(join(site.path, "damaged"), "file in a worktree with a damaged index");
      const index = world.git(site.path, "rev-parse", "--path-format=absolute", "--git-path", "index");
      chmodSync(index, 0o600);
      writeFileSync(index, "no index");
      site.state = "broken";
      return true;
    },
  ],
  "its .git points nowhere": [
    1,
    ({ world, site }) => {
      world.write(join(site.path, "cut-off"), "file in a worktree whose .git points nowhere");
      writeFileSync(join(site.path, ".git"), "gitdir: /nowhere/at/all\n");
      site.state = "broken";
      return true;
    },
  ],
  locked: [
    1,
    ({ world, site }) => {
      world.git(site.path, "worktree", "lock", site.path);
      site.state = "locked";
      return true;
    },
  ],
};

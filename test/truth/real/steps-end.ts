// Steps that end or suspend a process or kill its parent: signals, /quit, a closed terminal, a killed wrapper, a killed server.
import type { SeenProcess } from "../../agents/test-home.ts";
import { waitFor } from "../../agents/test-home.ts";
import { gone, linesOf } from "./signs-of-agents.ts";
import { ending, find, type Identity, isOpen, liveProcesses, type Scene } from "./simulated-host.ts";
import { type Action, alive, inPhase, type Living, living } from "./step.ts";
import { enter } from "./steps-turn.ts";

/** Its own process: not a server that has others, too. */
const own = ({ life }: Living): boolean => !life.served;
const lasting = inPhase("fresh", "idle", "held", "tool", "asking");

/** What may be said of a turn that this ended; the agents' notes have the table. */
export function outcomesAfter(scene: Scene, session: Living, how: "SIGINT" | "other"): (string | null)[] {
  const { life, agent, outcomes } = session;
  if (!isOpen(life)) return outcomes;
  if (how === "other" || life.kind === "interface") return ["cut-off"];
  // 2.1.197 often writes nothing on SIGINT.
  return agent === "claude" && scene.claude === "2.1.197" ? ["interrupted", "cut-off"] : ["interrupted"];
}

const signal = (name: "SIGINT" | "SIGTERM" | "SIGKILL", weight: number): Action => ({
  weight,
  targets: (scene) =>
    name === "SIGKILL"
      ? scene
          .living()
          .filter(own)
          .map(({ number }) => number)
      : living(scene, (each) => own(each) && lasting(each)),
  async run(scene, number, dice) {
    const session = alive(scene, number);
    const { owner } = session.life;
    const outcomes = outcomesAfter(scene, session, name === "SIGINT" ? name : "other");
    await scene.during(
      dice,
      { session, between: ending(scene, session, outcomes), unnamed: session.life.owner },
      async () => {
        send(owner, name);
        await gone(owner);
      },
    );
    scene.bury(session, outcomes);
  },
});

export const endSteps: Record<string, Action> = {
  sigint: signal("SIGINT", 1),
  sigterm: signal("SIGTERM", 1),
  sigkill: signal("SIGKILL", 2),
  suspend: {
    weight: 2,
    targets: (scene) => living(scene, (each) => own(each) && lasting(each)),
    async run(scene, number) {
      const session = alive(scene, number);
      send(session.life.owner, "SIGSTOP");
      await waitFor("it to stop", () => find(liveProcesses(), session.life.owner)?.state === "T");
      session.life.suspended = true;
    },
  },
  continue: {
    weight: 4,
    targets: (scene) =>
      scene
        .living()
        .filter(({ life }) => life.suspended)
        .map(({ number }) => number),
    async run(scene, number) {
      const session = alive(scene, number);
      send(session.life.owner, "SIGCONT");
      await waitFor("it to go on", () => find(liveProcesses(), session.life.owner)?.state !== "T");
      session.life.suspended = false;
    },
  },
  quit: {
    weight: 2,
    targets: (scene) => living(scene, (each) => each.life.tui !== null && inPhase("fresh", "idle")(each)),
    run: (scene, number, dice) =>
      leave(scene, number, dice, (session) => enter(session, session.agent === "claude" ? "/exit" : "/quit")),
  },
  close: {
    weight: 2,
    targets: (scene) => living(scene, (each) => each.life.tui !== null),
    run: (scene, number, dice) =>
      leave(scene, number, dice, async (session) => {
        session.life.tui?.close();
      }),
  },
  "kill-viewer": {
    weight: 2,
    targets: (scene) => living(scene, (each) => each.life.tui !== null && each.life.served),
    run: (scene, number, dice) =>
      leave(scene, number, dice, async (session) => {
        session.life.tui?.signal("SIGKILL");
      }),
  },
  "kill-wrapper": {
    weight: 3,
    targets: (scene) =>
      living(scene, (each) => own(each) && each.life.kind === "headless" && wrapperOf(scene, each) !== null),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const wrapper = wrapperOf(scene, session);
      if (wrapper === null) return;
      await scene.during(dice, { session }, async () => {
        send(wrapper, "SIGKILL");
        await gone(wrapper);
      });
      scene.settle(session);
    },
  },
  "kill-server": {
    weight: 1,
    targets: (scene) => living(scene, ({ life }) => life.served).slice(0, 1),
    async run(scene, number, dice) {
      const { owner } = alive(scene, number).life;
      const served = scene.living().filter(({ life }) => life.served);
      // An interface that lost its server would look for another.
      for (const { life } of served)
        if (life.tui !== null) {
          life.tui.signal("SIGKILL");
          await gone(life.tui);
        }
      await scene.during(dice, {}, async () => {
        send(owner, "SIGKILL");
        await gone(owner);
      });
      for (const session of served) scene.bury(session, outcomesAfter(scene, session, "other"));
    },
  },
};

/** The terminal goes: its own process with it; a served session stays with its server. */
async function leave(
  scene: Scene,
  number: number,
  dice: Parameters<Scene["during"]>[0],
  how: (session: Living) => Promise<void>,
): Promise<void> {
  const session = alive(scene, number);
  const { tui, served, owner } = session.life;
  if (tui === null) return;
  const outcomes = outcomesAfter(scene, session, "other");
  const between = served ? [] : ending(scene, session, outcomes);
  const unnamed = served ? tui : owner;
  // Some agents write a record even without a prompt.
  const written = between.map((truth) => ({ ...truth, recorded: true }));
  await scene.during(dice, { session, between: [...between, ...written], unnamed }, async () => {
    await how(session);
    await gone(tui);
    if (!served) await gone(owner);
  });
  session.life.tui = null;
  session.recorded ||= linesOf(scene, session) > 0;
  if (served) scene.settle(session);
  else scene.bury(session, outcomes);
}

/** npm's node wrapper around Codex. */
function wrapperOf(scene: Scene, { life }: Living): SeenProcess | null {
  return ancestors(scene, life.owner).find(({ exe }) => exe?.endsWith("/node")) ?? null;
}

export function ancestors(scene: Scene, identity: Identity): SeenProcess[] {
  const all = new Map(scene.world.processes().map((seen) => [seen.pid, seen]));
  const found: SeenProcess[] = [];
  let above = all.get(all.get(identity.pid)?.parent ?? 0);
  while (above !== undefined) {
    found.push(above);
    above = all.get(above.parent);
  }
  return found;
}

export function send(identity: Identity, name: NodeJS.Signals): void {
  if (find(liveProcesses(), identity) !== null) process.kill(identity.pid, name);
}

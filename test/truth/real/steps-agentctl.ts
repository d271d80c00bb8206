// Steps that run agentctl: launch, send, stop, interrupt; and steps that remove its own files.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { gone, interrupted, linesOf, owned, turnEnded } from "./signs-of-agents.ts";
import { becoming, ending, isOpen, type Scene, starting } from "./simulated-host.ts";
import { type Action, alive, dead, inPhase, type Living, living, roomFor } from "./step.ts";
import { ancestors, outcomesAfter, send } from "./steps-end.ts";
import { headlessLife, heldScript, scriptBegun, toolScript } from "./steps-start.ts";

const free = ["--share", "--permission", "bypass"];

export const agentctlSteps: Record<string, Action> = {
  launch: {
    weight: 3,
    targets: roomFor,
    async run(scene, number, dice) {
      const agent = dice.pick(["claude", "codex"] as const);
      const told = dice.chance(0.5) ? heldScript(scene) : toolScript(scene);
      await scene.during(dice, { newcomers: 1 }, async () => {
        const id = await acted(scene, "launch", agent, "-p", told.prompt, ...free);
        const session = scene.add(number, agent, id);
        session.truths = [starting()];
        scene.newcomers = 0;
        await scriptBegun(scene, session, 0, told);
        Object.assign(session, { life: headlessLife(await owned(scene, session), told), recorded: true });
        scene.settle(session);
      });
    },
  },
  send: {
    weight: 2,
    targets: (scene) => (roomFor(scene).length > 0 ? [...dead(scene), ...servedIdle(scene)] : []),
    async run(scene, number, dice) {
      const session = scene.get(number);
      const { life } = session;
      const told = heldScript(scene);
      const since = linesOf(scene, session);
      const between = life === null ? starting() : becoming(scene, session, "working", "idle");
      await scene.during(dice, { session, between: [between] }, async () => {
        await acted(scene, "send", session.id, "-p", told.prompt, ...(life === null ? free : []));
        await scriptBegun(scene, session, since, told);
      });
      if (life === null) session.life = headlessLife(await owned(scene, session), told);
      else Object.assign(life, { phase: "held", hold: told.mark });
      scene.settle(session);
    },
  },
  stop: {
    weight: 2,
    targets: (scene) =>
      scene
        .living()
        .filter(stoppable)
        .map(({ number }) => number),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const { life } = session;
      if (life.served) {
        await endTurn(scene, session, dice, "stop");
        return;
      }
      // A suspended one may have to be killed.
      const polite = outcomesAfter(scene, session, "SIGINT");
      const outcomes = life.suspended && isOpen(life) ? [...polite, "cut-off"] : polite;
      await scene.during(
        dice,
        { session, between: ending(scene, session, outcomes), unnamed: session.life.owner },
        async () => {
          await acted(scene, "stop", session.id, "-y");
        },
      );
      await gone(life.owner);
      scene.bury(session, outcomes);
    },
  },
  interrupt: {
    weight: 1,
    targets: (scene) =>
      living(scene, (each) => isOpen(each.life) && (each.life.served || each.life.kind === "headless")),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      if (session.life.served) {
        await endTurn(scene, session, dice, "interrupt");
        return;
      }
      const outcomes = outcomesAfter(scene, session, "SIGINT");
      await scene.during(
        dice,
        { session, between: ending(scene, session, outcomes), unnamed: session.life.owner },
        async () => {
          await acted(scene, "interrupt", session.id);
          await gone(session.life.owner);
        },
      );
      scene.bury(session, outcomes);
    },
  },
  "kill-holder": {
    weight: 3,
    targets: (scene) => living(scene, (each) => holderOf(scene, each) !== undefined),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const holder = holderOf(scene, session);
      if (holder === undefined) return;
      await scene.during(dice, { session }, async () => {
        send(holder, "SIGKILL");
        await gone(holder);
      });
      scene.settle(session);
    },
  },
  forget: {
    weight: 1,
    targets: (scene) => (scene.sessions.size > 0 ? [0] : []),
    async run({ world }) {
      rmSync(join(world.dir, "agentctl"), { recursive: true, force: true });
    },
  },
  ask: {
    weight: 2,
    targets: (scene) => (scene.sessions.size > 0 ? [0] : []),
    async run() {},
  },
};

const stoppable = ({ life }: Living): boolean =>
  life.served
    ? isOpen(life) && !life.suspended
    : inPhase("fresh", "idle", "held", "tool", "asking")({ life } as Living);

const servedIdle = (scene: Scene): number[] =>
  living(scene, ({ life, recorded }) => life.served && recorded && life.phase === "idle");

const holderOf = (scene: Scene, { life }: Living) =>
  ancestors(scene, life.owner).find(({ argv }) => argv[3] === "agentctl-holder");

/** Of a served session only the turn is ended. */
async function endTurn(
  scene: Scene,
  session: Living,
  dice: Parameters<Scene["during"]>[0],
  command: "stop" | "interrupt",
): Promise<void> {
  const since = linesOf(scene, session);
  await scene.during(dice, { session, between: [becoming(scene, session, "working", "idle")] }, async () => {
    await acted(scene, command, session.id);
    await turnEnded(scene, session, since, interrupted(session));
  });
  session.outcomes = ["interrupted"];
  Object.assign(session.life, { phase: "idle", hold: null, tool: null });
  scene.settle(session);
}

/** The answer of an agentctl that acts, with the home's whole environment. */
async function acted({ world, bin }: Scene, ...args: string[]): Promise<string> {
  const child = Bun.spawn([bin, ...args], {
    env: { ...world.env, AGENTCTL_HOME: join(world.dir, "agentctl") },
    cwd: world.cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`agentctl ${args.slice(0, 3).join(" ")}: exit ${code}\n${err}`);
  return out.trim();
}

// Steps that start a session: by hand, headless or in a terminal; resumed, forked, reopened.
import { join } from "node:path";
import { idle } from "../../agents/claude-cases.ts";
import { ready, started } from "../../agents/codex-cases.ts";
import { codexBinary, type Headless, lockedThreads, type Tui, waitFor } from "../../agents/test-home.ts";
import type { Dice } from "../random.ts";
import { failed, gone, linesOf, owned, recorded, serverSaysIdle, toolBegun, turnBegun } from "./signs-of-agents.ts";
import { type Identity, type Life, type Scene, type Session, starting } from "./simulated-host.ts";
import { type Action, dead, roomFor } from "./step.ts";

export interface Script {
  mark: string;
  prompt: string;
  phase: "held" | "tool";
  tool: string | null;
}

/** Claude sends a prompt that failed once more, together with the next: its mark must not count again. */
export const noError = " ;; ERR=400*0";

/** A prompt whose answer the model holds back. */
export function heldScript(scene: Scene): Script {
  const mark = scene.mark("h");
  return { mark, prompt: `${mark} ;; HOLD=${mark} ;; SAY=done ${mark}${noError}`, phase: "held", tool: null };
}

/** A prompt with a tool that runs until it is ended; the answer after it is held back, too. */
export function toolScript(scene: Scene): Script {
  const mark = scene.mark("t");
  const tool = join(scene.world.dir, `tool-${mark}`);
  const prompt = `${mark} ;; BASH=touch ${tool}; tail -f ${tool} ;; HOLD=${mark} ;; SAY=done ${mark}${noError}`;
  return { mark, prompt, phase: "tool", tool };
}

export async function scriptBegun(scene: Scene, session: Session, since: number, script: Script): Promise<void> {
  await turnBegun(scene, session, since, script.mark);
  if (script.tool !== null) await toolBegun(scene, session, since, script.tool);
}

export function headlessLife(owner: Identity, script: Script): Life {
  const { phase, tool, mark } = script;
  const kind = "headless" as const;
  return { kind, owner, served: false, tui: null, permission: "bypass", phase, suspended: false, hold: mark, tool };
}

const bypass = "--dangerously-skip-permissions";

/** Codex by npm's wrapper, as users have it, or its binary. */
const codexCommand = (dice: Dice): string => (dice.chance(0.5) ? "codex" : codexBinary());

const hand = (script: (scene: Scene) => Script): Action => ({
  weight: 2,
  targets: roomFor,
  async run(scene, number, dice) {
    const { world } = scene;
    const agent = dice.pick(["claude", "codex"] as const);
    const told = script(scene);
    if (agent === "claude") {
      const session = scene.add(number, agent, dice.uuid());
      const command = ["claude", "-p", told.prompt, "--session-id", session.id, bypass];
      const child = world.start(command);
      const owner = { pid: child.pid, start: child.start };
      session.truths = [starting()];
      await scene.during(dice, { session, between: [starting()], newcomers: 0, unnamed: owner }, () =>
        scriptBegun(scene, session, 0, told),
      );
      Object.assign(session, { life: headlessLife(owner, told), recorded: true });
      scene.settle(session);
      return;
    }
    const child = world.start([codexCommand(dice), "exec", "--json", told.prompt]);
    await scene.during(dice, { newcomers: 1 }, async () => {
      const session = await newThread(scene, number, child);
      await scriptBegun(scene, session, 0, told);
      Object.assign(session, { life: headlessLife(await owned(scene, session), told), recorded: true });
      scene.settle(session);
    });
  },
});

/** From the moment on that its id is known, it is no newcomer any more. */
async function newThread(scene: Scene, number: number, child: Headless): Promise<Session> {
  const id = await started(child);
  const session = scene.add(number, "codex", id);
  session.truths = [starting()];
  scene.newcomers = 0;
  return session;
}

export const startSteps: Record<string, Action> = {
  "hand-hold": hand(heldScript),
  "hand-tool": hand(toolScript),
  "hand-error": {
    weight: 1,
    targets: roomFor,
    async run(scene, number, dice) {
      const agent = dice.pick(["claude", "codex"] as const);
      const mark = scene.mark("e");
      const prompt = `${mark} ;; ERR=400`;
      const id = dice.uuid();
      const child =
        agent === "claude"
          ? scene.world.start(["claude", "-p", prompt, "--session-id", id])
          : scene.world.start([codexBinary(), "exec", "--json", prompt]);
      await scene.during(dice, { newcomers: 1 }, async () => {
        const session = agent === "claude" ? scene.add(number, agent, id) : await newThread(scene, number, child);
        session.truths = [starting(), { ...starting(["failed", null, "cut-off"]), owner: null }];
        await recorded(scene, session, 0, failed(session));
        await gone(child);
        Object.assign(session, { outcomes: ["failed"], recorded: true });
        scene.settle(session);
      });
    },
  },
  open: {
    weight: 6,
    targets: roomFor,
    async run(scene, number, dice) {
      const agent = dice.pick(["claude", "claude", "codex"] as const);
      if (agent === "claude") {
        const session = scene.add(number, agent, dice.uuid());
        const permission = dice.pick(["ask", "ask", "bypass"] as const);
        const mode = permission === "ask" ? ["--permission-mode", "default"] : [bypass];
        const tui = scene.world.open(["claude", "--session-id", session.id, ...mode]);
        session.truths = [starting()];
        await scene.during(dice, { session, between: [starting()], unnamed: tui }, async () => {
          await idle(scene.world, tui);
        });
        live(scene, session, tui, permission, "fresh");
        return;
      }
      const tui = scene.world.open([scene.daemon ? codexBinary() : codexCommand(dice)]);
      const known = new Set([...scene.sessions.values()].map(({ id }) => id));
      await scene.during(dice, { newcomers: 1, unnamed: tui }, async () => {
        await ready(tui);
        const id = await waitFor("a new thread's lock", () =>
          scene.world
            .processes()
            .flatMap(({ pid }) => lockedThreads(pid))
            .find((thread) => !known.has(thread)),
        );
        const session = scene.add(number, agent, id);
        session.truths = [starting()];
        await liveCodex(scene, session, tui, "fresh");
      });
    },
  },
  resume: {
    weight: 2,
    targets: (scene) => (roomFor(scene).length > 0 ? dead(scene) : []),
    async run(scene, number, dice) {
      const session = scene.get(number);
      const told = dice.chance(0.7) ? heldScript(scene) : toolScript(scene);
      const since = linesOf(scene, session);
      const child = scene.world.start(
        session.agent === "claude"
          ? ["claude", "-p", told.prompt, "--resume", session.id, bypass]
          : [codexCommand(dice), "exec", "--json", "resume", session.id, told.prompt],
      );
      await scene.during(dice, { session, between: [starting()], unnamed: child }, () =>
        scriptBegun(scene, session, since, told),
      );
      session.life = headlessLife(await owned(scene, session), told);
      scene.settle(session);
    },
  },
  fork: {
    weight: 1,
    targets: (scene) => (roomFor(scene).length > 0 ? dead(scene) : []),
    async run(scene, number, dice) {
      const parent = scene.get(number);
      const told = heldScript(scene);
      const id = dice.uuid();
      const fork = ["--fork-session", "--session-id", id];
      const child = scene.world.start(
        parent.agent === "claude"
          ? ["claude", "-p", told.prompt, "--resume", parent.id, ...fork, bypass]
          : [codexBinary(), "exec", "--json", "fork", parent.id, told.prompt],
      );
      await scene.during(dice, { newcomers: 1, unnamed: child }, async () => {
        const next = scene.childNumber(number);
        const session = parent.agent === "claude" ? scene.add(next, "claude", id) : await newThread(scene, next, child);
        session.truths = [starting()];
        await scriptBegun(scene, session, 0, told);
        Object.assign(session, { life: headlessLife(await owned(scene, session), told), recorded: true });
        scene.settle(session);
      });
    },
  },
  reopen: {
    weight: 3,
    targets: (scene) => (roomFor(scene).length > 0 ? [...dead(scene), ...unseen(scene)] : []),
    async run(scene, number, dice) {
      const session = scene.get(number);
      const { life } = session;
      const command =
        session.agent === "claude" ? ["claude", "--resume", session.id] : [codexBinary(), "resume", session.id];
      const permission = dice.pick(["ask", "bypass"] as const);
      const mode = permission === "ask" ? ["--permission-mode", "default"] : [bypass];
      const tui = scene.world.open(session.agent === "claude" ? [...command, ...mode] : command);
      const between = life === null ? [starting(session.outcomes)] : [];
      await scene.during(dice, { session, between, unnamed: tui }, async () => {
        if (session.agent === "claude") await idle(scene.world, tui);
        else await tui.shows(/\? for shortcuts|› Ask Codex|Working|esc to interrupt/);
        await owned(scene, session);
      });
      if (session.agent === "claude") live(scene, session, tui, permission, "idle");
      else if (life === null) await liveCodex(scene, session, tui, "idle");
      else life.tui = tui;
    },
  },
};

/** Served sessions that no terminal shows. */
const unseen = (scene: Scene): number[] =>
  scene
    .living()
    .filter(({ life, recorded: isRecorded }) => life.served && life.tui === null && isRecorded && life.phase === "idle")
    .map(({ number }) => number);

const calm = { kind: "interface", suspended: false, hold: null, tool: null } as const;

function live(scene: Scene, session: Session, tui: Tui, permission: "ask" | "bypass", phase: "fresh" | "idle"): void {
  const owner = { pid: tui.pid, start: tui.start };
  session.life = { ...calm, owner, served: false, tui, permission, phase };
  scene.settle(session);
}

async function liveCodex(scene: Scene, session: Session, tui: Tui, phase: "fresh" | "idle"): Promise<void> {
  const owner = await owned(scene, session);
  // Its lock is there before the daemon counts it among its threads.
  if (scene.daemon && phase === "idle") await serverSaysIdle(scene, session);
  // Reopened, it may keep what it was started with, or not (the daemon does): then nothing is asked of it that depends on it.
  const permission = scene.approval === "never" ? "bypass" : phase === "fresh" ? "ask" : "unsure";
  session.life = { ...calm, owner, served: scene.daemon, tui, permission, phase };
  scene.settle(session);
}

// Steps inside of a session: prompts, answers, tools, permission questions, Esc, /clear.
import { submit } from "../../agents/claude-cases.ts";
import { say } from "../../agents/codex-cases.ts";
import { announcement, type Tui, waitFor } from "../../agents/test-home.ts";
import {
  completed,
  failed,
  gone,
  interrupted,
  linesOf,
  recorded,
  requested,
  saysIdle,
  turnBegun,
  turnEnded,
} from "./signs-of-agents.ts";
import { becoming, type Scene, starting, truthOf } from "./simulated-host.ts";
import { type Action, alive, inPhase, type Living, living } from "./step.ts";
import { heldScript, noError, type Script, scriptBegun, toolScript } from "./steps-start.ts";

const shown = ({ life }: Living): boolean => life.tui !== null;
const calm = (session: Living): boolean => !session.mixed && inPhase("fresh", "idle")(session);

const prompt = (script: (scene: Scene) => Script, permission: "any" | "bypass"): Action => ({
  weight: 6,
  targets: (scene) =>
    living(scene, (each) => shown(each) && calm(each) && (permission === "any" || each.life.permission === permission)),
  async run(scene, number, dice) {
    const session = alive(scene, number);
    const told = script(scene);
    const since = linesOf(scene, session);
    const between = becoming(scene, session, "working", ...(told.tool === null ? [] : toolWords(scene, session)));
    await scene.during(dice, { session, between: [{ ...between, recorded: false }, between] }, async () => {
      await enter(session, told.prompt);
      await scriptBegun(scene, session, since, told);
      if (session.agent === "claude" && told.tool === null) await waitFor("busy", () => isBusy(scene, session));
    });
    Object.assign(session, { recorded: true });
    Object.assign(session.life, { phase: told.phase, hold: told.mark, tool: told.tool });
    scene.settle(session);
  },
});

export const turnSteps: Record<string, Action> = {
  prompt: prompt(heldScript, "any"),
  "prompt-tool": prompt(toolScript, "bypass"),
  "prompt-error": {
    weight: 2,
    targets: (scene) => living(scene, (each) => shown(each) && calm(each)),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const mark = scene.mark("e");
      const since = linesOf(scene, session);
      await scene.during(dice, { session, between: [becoming(scene, session, "working", "idle")] }, async () => {
        await enter(session, `${mark} ;; ERR=400`);
        await requested(scene, mark);
        await turnEnded(scene, session, since, failed(session));
      });
      await back(session);
      Object.assign(session, { recorded: true, outcomes: ["failed"] });
      session.life.phase = "idle";
      scene.settle(session);
    },
  },
  release: {
    weight: 6,
    targets: (scene) => living(scene, inPhase("held")),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const { life } = session;
      const since = linesOf(scene, session);
      const between = { ...becoming(scene, session, "working", "idle"), outcomes: ["completed"] };
      const stays = life.kind === "interface";
      await scene.during(dice, { session, between: [between] }, async () => {
        scene.world.model.release(life.hold ?? "");
        await recorded(scene, session, since, completed(session));
        if (stays) await saysIdle(scene, session);
        else if (session.agent === "claude") await gone(life.owner);
      });
      session.outcomes = ["completed"];
      if (stays) life.phase = "idle";
      // Codex takes seconds to leave after its last answer.
      else if (session.agent === "codex") life.phase = "lingering";
      if (stays || session.agent === "codex") scene.settle(session);
      else scene.bury(session, session.outcomes);
    },
  },
  "kill-tool": {
    weight: 4,
    targets: (scene) => living(scene, inPhase("tool")),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const { life } = session;
      const tools = scene.world.processes().filter(({ argv }) => argv[0] === "tail" && argv.includes(life.tool ?? ""));
      const signal = dice.pick(["SIGKILL", "SIGTERM"] as const);
      await scene.during(dice, { session, between: [becoming(scene, session, "working")] }, async () => {
        for (const { pid } of tools) process.kill(pid, signal);
        await requested(scene, life.hold ?? "", 1);
        // Of the result the record tells a moment later.
        const result = session.agent === "claude" ? '"tool_result"' : "_call_output";
        await recorded(scene, session, 0, result, session.agent === "claude" ? "toolu_" : "call_");
      });
      life.phase = "held";
      scene.settle(session);
    },
  },
  question: {
    weight: 7,
    targets: (scene) => living(scene, (each) => shown(each) && calm(each) && each.life.permission === "ask"),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const mark = scene.mark("q");
      const file = `made-${mark}`;
      const since = linesOf(scene, session);
      const escalate = { cmd: `touch ${file}`, sandbox_permissions: "require_escalated", justification: "May I" };
      const call = session.agent === "claude" ? `BASH=touch ${file}` : `TOOL=exec_command ${JSON.stringify(escalate)}`;
      const between = becoming(scene, session, "working", "waiting", "unclear");
      await scene.during(dice, { session, between: [{ ...between, recorded: false }, between] }, async () => {
        await enter(session, `${mark} ;; ${call} ;; SAY=asked ${mark}${noError}`);
        await turnBegun(scene, session, since, mark);
        await recorded(
          scene,
          session,
          since,
          session.agent === "claude" ? '"tool_use"' : '"type":"function_call"',
          file,
        );
        if (session.agent === "claude")
          await waitFor("waiting", () => announcement(scene.world, session.life.owner.pid)?.["status"] === "waiting");
        await session.life.tui?.shows(session.agent === "claude" ? /1\. Yes/ : /would you like to run|allow|approve/i);
      });
      Object.assign(session, { recorded: true });
      Object.assign(session.life, { phase: "asking", tool: file });
      scene.settle(session);
    },
  },
  answer: {
    weight: 9,
    targets: (scene) => living(scene, (each) => shown(each) && inPhase("asking")(each)),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const yes = dice.chance(0.6);
      const since = linesOf(scene, session);
      const how = yes ? completed(session) : interrupted(session);
      const between = becoming(scene, session, "working", "idle", "unclear");
      await scene.during(dice, { session, between: [between] }, async () => {
        await decide(scene, session, yes);
        await turnEnded(scene, session, since, how);
      });
      if (!yes) await back(session);
      session.outcomes = [yes ? "completed" : "interrupted"];
      scene.mix(session, session.life, session.outcomes);
      Object.assign(session.life, { phase: "idle", tool: null });
      scene.settle(session);
    },
  },
  escape: {
    weight: 4,
    targets: (scene) => living(scene, (each) => shown(each) && inPhase("held", "tool")(each)),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const since = linesOf(scene, session);
      await scene.during(dice, { session, between: [becoming(scene, session, "working", "idle")] }, async () => {
        session.life.tui?.press("Escape");
        await turnEnded(scene, session, since, interrupted(session));
      });
      await back(session);
      session.outcomes = ["interrupted"];
      scene.mix(session, session.life, session.outcomes);
      Object.assign(session.life, { phase: "idle", hold: null, tool: null });
      scene.settle(session);
    },
  },
  clear: {
    weight: 4,
    targets: (scene) => living(scene, (each) => shown(each) && each.agent === "claude" && inPhase("idle")(each)),
    async run(scene, number, dice) {
      const session = alive(scene, number);
      const { life } = session;
      const next = scene.childNumber(number);
      const left = { ...truthOf(scene, session), owner: null };
      const id = await scene.during(dice, { session, between: [left], newcomers: 1 }, async () => {
        await enter(session, "/clear");
        const other = await waitFor("another session", () => {
          const now = String(announcement(scene.world, life.owner.pid)?.["sessionId"]);
          return now !== session.id && now;
        });
        const successor = scene.add(next, "claude", other);
        successor.truths = [starting()];
        scene.newcomers = 0;
        // Its first lines tell of /clear itself.
        await recorded(scene, successor, 0, "/clear");
        await waitFor("idle", () => announcement(scene.world, life.owner.pid)?.["status"] === "idle");
        return other;
      });
      scene.bury(session, session.outcomes);
      const successor = scene.get(next);
      Object.assign(successor, { id, life: { ...life, phase: "idle" }, recorded: true, outcomes: [null] });
      scene.settle(successor);
    },
  },
};

/** Own word or unclear, while a tool call is pending. */
const toolWords = (scene: Scene, session: Living): string[] =>
  truthOf(scene, { ...session, life: { ...session.life, phase: "tool" } }).activities;

const isBusy = (scene: Scene, { life }: Living): boolean =>
  announcement(scene.world, life.owner.pid)?.["status"] === "busy";

/** Types it, and sends it once it stands there; what an interrupted prompt left in the line goes first. */
export async function enter({ agent, life }: Living, text: string): Promise<void> {
  const { tui } = life;
  if (tui === null) throw new Error("no terminal");
  tui.type("\x15");
  if (agent === "claude" || text.startsWith("/")) await submit(tui, text);
  else await say(tui, text);
}

/** The input line is there again. */
async function back({ agent, life }: Living): Promise<void> {
  await life.tui?.shows(agent === "claude" ? /❯/ : /›/);
}

/** A dialog ignores keys for a moment after it appears, so that a person who is typing does not answer it. */
async function decide(scene: Scene, session: Living, yes: boolean): Promise<void> {
  const tui = session.life.tui as Tui;
  if (session.agent === "codex") {
    tui.press(yes ? "Enter" : "Escape");
    return;
  }
  const { pid } = session.life.owner;
  const taken = () => announcement(scene.world, pid)?.["status"] !== "waiting";
  await waitFor("the answer to be taken", async () => {
    if (taken()) return true;
    tui.press(yes ? "Enter" : "Escape");
    const pressed = performance.now();
    await waitFor("a while", () => taken() || performance.now() - pressed > 700);
    return taken();
  });
}

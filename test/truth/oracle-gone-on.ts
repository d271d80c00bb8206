// Who went on to another session may have the end of the one before still to write: then nobody can say how that ended.
import { statSync } from "node:fs";
import { aroundStartMs } from "./directory.ts";
import { absentAsNull } from "./proc.ts";
import type { RecordReading } from "./record.ts";
import { isAlive, type Twin } from "./twin.ts";
import type { Session, World } from "./world.ts";

interface Scene {
  world: World;
  /** Live ones whose announcement is true. */
  announced: ReadonlySet<Twin>;
  readings: ReadonlyMap<Session, RecordReading>;
}

/** "sure": it has not written the end, and it shows that it went on since. "maybe": as far as the files tell. */
export function isEndToCome(scene: Scene, session: Session): "sure" | "maybe" | "no" {
  const reading = scene.readings.get(session);
  if (reading?.kind !== "record" || reading.says.turn !== "open") return "no";
  const about = [...scene.announced].map((twin) => wentOn(scene, twin, session, reading));
  if (about.includes("sure") && isLeftUnwritten(session)) return "sure";
  return about.some((each) => each !== "no") ? "maybe" : "no";
}

/** The lines that its process held back when it left. */
const isLeftUnwritten = ({ leftBy, heldBack, turnOpen }: Session): boolean =>
  leftBy !== null && isAlive(leftBy) && heldBack !== null && heldBack.length > 0 && !turnOpen;

function wentOn(
  { world, readings }: Scene,
  twin: Twin,
  session: Session,
  { lastAtMs, cwd }: Extract<RecordReading, { kind: "record" }>,
): "sure" | "maybe" | "no" {
  if (twin.session === session.id || twin.format !== session.format || twin.hosted !== null || twin.cwd !== cwd)
    return "no";
  const saidAtMs =
    twin.format.claims === null ? lastAtMs : (absentAsNull(() => statSync(world.claimPath(twin)).mtimeMs) ?? 0);
  const [now, what] = [...readings].find(([{ id }]) => id === twin.session) ?? [];
  const wroteAtMs = now === undefined ? null : absentAsNull(() => statSync(world.recordPath(now)).mtimeMs);
  // How much earlier than the last message it began, and wrote to the session that it has now; how much later it spoke.
  const beganMs = lastAtMs - twin.startMs;
  const spokeMs = saidAtMs - lastAtMs;
  const wroteMs = wroteAtMs === null ? Number.POSITIVE_INFINITY : lastAtMs - wroteAtMs;
  if (Math.min(beganMs, spokeMs, wroteMs) < -aroundStartMs) return "no";
  const isWhole = what === undefined || what.kind === "absent" || what.kind === "record";
  return Math.min(beganMs, spokeMs) > -tickMs && wroteMs > tickMs && isWhole ? "sure" : "maybe";
}

/** Files and processes have their times from a clock that ticks. */
const tickMs = 20;

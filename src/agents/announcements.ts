// Announcements in files <pid>.json that contain the pid, too, and the UUID of a session.
import { type Announcement, emptyAnnouncement } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { AnnouncementFile, AnnouncementFiles } from "./adapter.ts";
import { type Fields, fieldsOf, uuidIn } from "./fields.ts";

export const announcementFiles = (
  agent: string,
  folder: string,
  sessionKey: string,
  facts: (fields: Fields, session: string) => Partial<Announcement>,
): AnnouncementFiles => ({
  folder,
  name: /^(?<pid>[1-9][0-9]{0,9})\.json$/,
  parse(file) {
    const fields = fieldsOf(file.value) ?? {};
    const session = uuidIn(fields, sessionKey);
    const { pid } = file;
    if (session === null || pid === null || fields["pid"] !== pid) return unknownAnnouncement(agent, file);
    return read({ ...emptyAnnouncement({ ...file, session, pid }), ...facts(fields, session) });
  },
});

export const unknownAnnouncement = (
  agent: string,
  { path }: AnnouncementFile,
  code: "unknown-shape" | "no-owner-recorded" = "unknown-shape",
): Reading<never> => unread({ code: "announcement-unreadable", agent, source: path, detail: { code } });

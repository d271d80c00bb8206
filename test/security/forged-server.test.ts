// A server gets a request, and a secret, only if its socket and its process belong to us.

import { describe, expect } from "bun:test";
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { List } from "../cli/test-home.ts";
import { ServerTestHome, until } from "../cli/test-home-servers.ts";
import { asOther, OtherFolder, otherUid, testAsOther } from "./other-user.ts";

/** Listens, answers each line with the text, and records every line. */
const server = `
use IO::Socket::UNIX; my ($path, $answer, $log) = @ARGV; $SIG{PIPE} = "IGNORE";
my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die "$path: $!"; chmod 0777, $path;
open(my $out, ">", $log) or die "$log: $!"; $out->autoflush(1); print "ready\\n"; STDOUT->flush();
while (my $peer = $listener->accept()) { my $asked = <$peer>; print $out $asked if defined $asked; print $peer $answer; close $peer; }
`;

async function serveAs(command: string[], path: string, answer: string, log: string): Promise<Bun.Subprocess> {
  const words = [...command, "perl", "-e", `use IO::Handle; ${server}`, path, answer, log];
  const child = Bun.spawn(words, { cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
  await until("the server", () => existsSync(log));
  return child;
}

describe("a socket in the home that is named after our process", () => {
  const answerOf = (id: string): string => JSON.stringify({ sessions: [{ id, activity: "working" }] });

  testAsOther("is not used if it belongs to another user", async () => {
    await using stage = new ServerTestHome();
    using theirs = new OtherFolder();
    const servers = join(theirs.path, "servers");
    mkdirSync(servers);
    chownSync(servers, otherUid, otherUid);
    const id = crypto.randomUUID();
    const victim = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
    const log = join(theirs.path, "log");
    const forged = await serveAs(asOther(), join(servers, `${victim.pid}.sock`), answerOf(id), log);
    try {
      const { out } = await stage.run(["list", "-a", "--json"], { env: { DEMO_AGENT_HOME: theirs.path } });
      expect((JSON.parse(out) as List).sessions).toEqual([]);
      expect(await Bun.file(log).text()).toBe("");
    } finally {
      forged.kill("SIGKILL");
      victim.kill("SIGKILL");
    }
  });

  testAsOther("is not used if another user listens on our file in a folder that others can write to", async () => {
    await using stage = new ServerTestHome();
    using theirs = new OtherFolder();
    const servers = join(theirs.path, "servers");
    mkdirSync(servers);
    chownSync(servers, otherUid, otherUid);
    const id = crypto.randomUUID();
    const victim = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
    const [log, path] = [join(theirs.path, "log"), join(servers, `${victim.pid}.sock`)];
    const forged = await serveAs(asOther(), path, answerOf(id), log);
    chownSync(path, 0, 0);
    try {
      const { out } = await stage.run(["list", "-a", "--json"], { env: { DEMO_AGENT_HOME: theirs.path } });
      expect((JSON.parse(out) as List).sessions).toEqual([]);
      expect(await Bun.file(log).text()).toBe("");
    } finally {
      forged.kill("SIGKILL");
      victim.kill("SIGKILL");
    }
  });

  testAsOther("is not used if another process of ours listens on it", async () => {
    await using stage = new ServerTestHome();
    mkdirSync(join(stage.home, "servers"), { recursive: true });
    const id = crypto.randomUUID();
    const victim = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
    const path = join(stage.home, "servers", `${victim.pid}.sock`);
    const other = await serveAs([], path, answerOf(id), join(stage.root, "log"));
    try {
      expect((await stage.list()).sessions).toEqual([]);
    } finally {
      other.kill("SIGKILL");
      victim.kill("SIGKILL");
    }
  });
});

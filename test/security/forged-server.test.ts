// A server is asked, and told a secret, only if the socket and the process behind it are ours.

import { describe, expect } from "bun:test";
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Stage, until } from "../cli/live.ts";
import type { List } from "../cli/world.ts";
import { asOther, OtherFolder, otherUid, testAsOther } from "./other-user.ts";

/** Listens, answers each line with the text, and writes down whatever it is told. */
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

describe("a socket below the home, under the number of our process", () => {
  const answerOf = (id: string): string => JSON.stringify({ sessions: [{ id, activity: "working" }] });

  testAsOther("that is another user's is not asked", async () => {
    await using stage = new Stage();
    using theirs = new OtherFolder();
    const hosts = join(theirs.path, "hosts");
    mkdirSync(hosts);
    chownSync(hosts, otherUid, otherUid);
    const id = crypto.randomUUID();
    const victim = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
    const log = join(theirs.path, "log");
    const forged = await serveAs(asOther(), join(hosts, `${victim.pid}.sock`), answerOf(id), log);
    try {
      const { out } = await stage.run(["list", "-a", "--json"], { env: { DEMO_AGENT_HOME: theirs.path } });
      expect((JSON.parse(out) as List).sessions).toEqual([]);
      expect(await Bun.file(log).text()).toBe("");
    } finally {
      forged.kill("SIGKILL");
      victim.kill("SIGKILL");
    }
  });

  testAsOther(
    "in a folder that others may write, with our file but another user's listener, is not asked",
    async () => {
      await using stage = new Stage();
      using theirs = new OtherFolder();
      const hosts = join(theirs.path, "hosts");
      mkdirSync(hosts);
      chownSync(hosts, otherUid, otherUid);
      const id = crypto.randomUUID();
      const victim = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
      const [log, path] = [join(theirs.path, "log"), join(hosts, `${victim.pid}.sock`)];
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
    },
  );

  testAsOther("on which another process of ours listens does not speak for it", async () => {
    await using stage = new Stage();
    mkdirSync(join(stage.home, "hosts"), { recursive: true });
    const id = crypto.randomUUID();
    const victim = Bun.spawn(["sleep", "600"], { stdio: ["ignore", "ignore", "ignore"] });
    const path = join(stage.home, "hosts", `${victim.pid}.sock`);
    const other = await serveAs([], path, answerOf(id), join(stage.root, "log"));
    try {
      expect((await stage.list()).sessions).toEqual([]);
    } finally {
      other.kill("SIGKILL");
      victim.kill("SIGKILL");
    }
  });
});

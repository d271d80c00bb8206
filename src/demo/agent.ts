// The demo agent: a small scripted stand-in for a coding agent. It is an agent, not a part of the engine: it writes the
// records that src/adapters/demo.md describes and behaves under signals as the agents people use do.
import { join } from "node:path";
import { writeOut } from "../sys/stdout.ts";
import { serve } from "./host.ts";
import { runSession } from "./session.ts";

const help = `demo-agent: a scripted agent to try agentctl with.

  agentctl demo-agent [OPTION…] STEP…      does the steps in order
  agentctl demo-agent -p [OPTION…]         headless: the prompt is all of stdin (up to 16 MB); lines of it that are steps
                                           are done in order, the last reply is printed; exit status 1: the turn failed
  agentctl demo-agent serve                hosts sessions; lines on stdin: start ID TEXT | ask ID TEXT | end ID

Options:
  --session-id ID | --resume ID            a new session with this id | go on with an old one
  --parent ID                              the session that this new one was forked from
  --permission read|edit|bypass            read: no edits, no commands; edit: no commands; else all is done
  --model NAME                             written into the record
  --script FILE                            steps, one in a line; with -p instead of those in the prompt
  --no-announce                            says nothing about itself
  --announce-after MS                      announces and records itself so much later
  --fail-start TEXT                        says TEXT on stderr and exits 1, before anything is written

Steps (in a prompt only those with a colon, and neither prompt nor idle):
  prompt:TEXT  say:TEXT  title:TEXT        lines of the record; a prompt opens a turn
  work:SECONDS                             stay busy
  tool:COMMAND                             run a shell command in a session of its own, as agents do
  edit:FILE:TEXT                           write a file
  ask:KIND:TEXT                            ask a person and wait for a line on stdin (with -p: forever)
  background:SHELLS:SUBAGENTS              what runs beside the turn from now on
  continued:ID                             the conversation goes on under another id
  end[:completed|failed|interrupted]       close the turn
  exit:STATUS                              leave at once, the turn stays open
  stderr:TEXT                              a line on stderr
  ignore:SIGNAL                            ignore SIGTERM, SIGINT, … from now on
  idle                                     stay alive; each line on stdin is a prompt, answered at once
`;

/** `mayRunCommands` is asked before the first command. */
export async function runDemoAgent(args: readonly string[], mayRunCommands: () => Promise<boolean>): Promise<number> {
  const home = process.env["DEMO_AGENT_HOME"] || join(process.env["HOME"] ?? "/", ".demo-agent");
  const [first] = args;
  if (first === "--help") {
    writeOut(help);
    return 0;
  }
  return first === "serve" ? await serve(home) : await runSession(home, args, mayRunCommands);
}

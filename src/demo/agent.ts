// The demo agent: a small scripted coding agent. It is a separate program that happens to be in the same binary: it writes the
// records that src/agents/demo/README.md describes, and reacts to signals as real agents do.
import { join } from "node:path";
import { writeOut } from "../sys/stdout.ts";
import { serve } from "./server.ts";
import { runSession } from "./session.ts";

const help = `demo-agent: a scripted agent to try agentctl with.

  agentctl demo-agent [OPTION…] STEP…      perform the steps in order
  agentctl demo-agent -p [OPTION…]         headless: read the prompt from stdin (up to 16 MB), perform its lines that are
                                           steps, print the last reply; exit code 1 if the turn failed
  agentctl demo-agent serve                serve many sessions; lines on stdin: start ID TEXT | ask ID TEXT | end ID

Options:
  --session-id ID | --resume ID            start a session with this id | continue an old one
  --parent ID                              the session that this one was forked from
  --permission read|edit|bypass            read: no edits, no commands; edit: no commands; default: everything
  --model NAME                             model name for the record
  --script FILE                            steps, one per line; with -p they replace the steps in the prompt
  --no-announce                            do not announce the session
  --announce-after MS                      announce and record the session MS milliseconds later
  --fail-start TEXT                        print TEXT on stderr and exit 1 before anything is written

Steps (in a prompt, only steps with a colon work, and prompt: does not):
  prompt:TEXT  say:TEXT  title:TEXT        write a line to the record; a prompt starts a turn
  work:SECONDS                             stay busy
  tool:COMMAND                             run a shell command in its own kernel session, as agents do
  edit:FILE:TEXT                           write a file
  ask:KIND:TEXT                            ask a person and wait for a line on stdin (with -p: wait forever)
  background:SHELLS:SUBAGENTS              record this many background shells and subagents
  continued:ID                             the conversation continues under another id
  end[:completed|failed|interrupted]       end the turn
  exit:STATUS                              exit at once, with the turn still open
  stderr:TEXT                              print a line on stderr
  ignore:SIGNAL                            ignore SIGTERM, SIGINT, … from now on
  idle                                     stay alive; each line on stdin is a prompt and gets an answer at once
`;

export async function runDemoAgent(args: readonly string[], mayRunCommands: () => Promise<boolean>): Promise<number> {
  const home = process.env["DEMO_AGENT_HOME"] || join(process.env["HOME"] ?? "/", ".demo-agent");
  const [first] = args;
  if (first === "--help") {
    writeOut(help);
    return 0;
  }
  return first === "serve" ? await serve(home) : await runSession(home, args, mayRunCommands);
}

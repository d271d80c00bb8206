// The truth rules that proofs name, each in half a sentence; docs/truth.md has them whole.

export const ruleWords: Readonly<Record<string, string>> = {
  R1: "a session runs if and only if a live process (pid, start and boot) owns it, or its host names it",
  R2: "stopped needs proof: everything was read, and nobody has it; what could not be read makes unknown",
  R3: "idle needs a recorded end of turn, waiting the agent's own word; time alone changes nothing",
  R9: "links have a strength: announced, assigned, by arguments, by directory; the stronger one wins",
  R10: "what another pid namespace or another host announced proves nothing, unless that very process is seen",
  R13: "a file is believed about processes of its owner, a file of ours about every process; a sandbox only about itself",
};

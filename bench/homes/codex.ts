// Writes a Codex record of a given size, with the lines of captured files of 0.166.0.
import { Clock, type Conversation, nextTurn, outputBytes } from "./conversation.ts";
import type { Prose } from "./prose.ts";

export function* codexLines(talk: Conversation, prose: Prose): Generator<string> {
  const { dice } = prose;
  const clock = new Clock(talk, 4_000);
  let written = 0;
  let ordinal = 0;
  let turn = "";
  let spent = 0;
  const line = (type: string, payload: string): string => {
    const text = `{"timestamp":"${clock.next()}","ordinal":${ordinal++},"type":"${type}","payload":{${payload}}}\n`;
    written += text.length;
    return text;
  };
  const happened = (type: string, rest: string) =>
    line("event_msg", `"type":"${type}","turn_id":"${turn}","root_turn_id":"${turn}",${rest}`);
  const said = (role: string, text: string, kind: string) =>
    line(
      "response_item",
      `"type":"message","id":"msg_${dice.uuid()}","role":"${role}","content":[{"type":"${role === "assistant" ? "output_text" : "input_text"}","text":"${text}"}],"internal_chat_message_metadata_passthrough":{"turn_id":"${turn}","content_item_kinds":["${kind}"]}`,
    );

  yield line(
    "session_meta",
    `"session_id":"${talk.id}","id":"${talk.id}","timestamp":"${clock.next()}","cwd":"${talk.cwd}","originator":"codex-tui","cli_version":"0.166.0","source":"cli","thread_source":"user","model_provider":"openai","base_instructions":"${prose.text(21_000)}","history_mode":"paginated","git":{"branch":"main"}`,
  );
  for (let isLast = false; !isLast; ) {
    const next = nextTurn(dice, talk.bytes - written);
    isLast = next.isLast;
    if (isLast) clock.hurry();
    yield* oneTurn(isLast ? talk.ending : "completed", ordinal === 1, written + next.bytes);
  }

  function* oneTurn(ending: Conversation["ending"], isFirst: boolean, until: number): Generator<string> {
    turn = dice.uuid();
    yield happened(
      "task_started",
      `"started_at":${Math.round(talk.endedAt / 1000)},"model_context_window":258400,"collaboration_mode_kind":"default"`,
    );
    if (isFirst) {
      yield said("developer", prose.text(2_500), "permissions.instructions");
      yield said("user", "<environment_context>", "environments.environment_context");
      yield line("world_state", `"state":"${prose.text(2_900)}"`);
    }
    yield line(
      "turn_context",
      `"turn_id":"${turn}","root_turn_id":"${turn}","cwd":"${talk.cwd}","approval_policy":"never","sandbox_policy":{"type":"workspace-write"},"model":"gpt-5-codex","effort":"medium"`,
    );
    const prompt = isFirst ? talk.prompt : prose.text(60);
    yield said("user", prompt, "user.text");
    yield happened("item_completed", `"item":{"type":"UserMessage","content":[{"type":"text","text":"${prompt}"}]}`);
    do yield* toolCall(until - written);
    while (written < until - answerBytes);
    if (ending === "working" || ending === "asking" || ending === "cut-off") return;
    const answer = prose.text(400 + dice.below(2_000));
    if (ending === "completed") {
      yield happened("item_completed", `"item":{"type":"AgentMessage","content":[{"type":"Text","text":"${answer}"}]}`);
      yield said("assistant", answer, "unknown");
    }
    yield usage();
    yield happened("token_count", `"info":{"model_context_window":258400}`);
    if (ending === "interrupted") yield happened("turn_aborted", `"reason":"interrupted","duration_ms":125`);
    else if (ending === "failed")
      yield happened(
        "task_complete",
        `"last_agent_message":null,"error":{"message":"failed","codex_error_info":"other"}`,
      );
    else yield happened("task_complete", `"last_agent_message":"done","duration_ms":177`);
  }

  function* toolCall(left: number): Generator<string> {
    const id = `call_${dice.uuid()}`;
    yield line(
      "response_item",
      `"type":"function_call","status":"completed","id":"fc_${dice.uuid()}","name":"exec_command","arguments":"{\\"cmd\\":\\"ls ${dice.below(1000)}\\"}","call_id":"${id}"`,
    );
    const output = prose.text(outputBytes(dice, left));
    yield line(
      "response_item",
      `"type":"function_call_output","id":"fco_${dice.uuid()}","call_id":"${id}","output":"${output}"`,
    );
    yield usage();
  }

  function usage(): string {
    spent += 1_000 + dice.below(9_000);
    const sum = (all: number) =>
      `{"input_tokens":${all},"cached_input_tokens":${all >> 1},"cache_write_input_tokens":0,"output_tokens":${all >> 4},"total_tokens":${all}}`;
    return line(
      "token_usage_record",
      `"thread_id":"${talk.id}","session_id":"${talk.id}","turn_id":"${turn}","usage":${sum(900)},"turn_token_usage":${sum(1_800)},"thread_token_usage":${sum(spent)}`,
    );
  }
}

const answerBytes = 6_000;

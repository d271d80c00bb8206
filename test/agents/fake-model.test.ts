// The fake model: in every API it does what the prompt says, with and without streaming.
import { expect, test } from "bun:test";
import { startFakeModel } from "./fake-model.ts";
import { type JsonObject, usagePerRequest } from "./fake-model-parts.ts";

const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };

/** One request of each API: a prompt, and the results of the calls so far. */
const dialects: Record<string, (prompt: string, results: number, stream: boolean) => [path: string, body: JsonObject]> =
  {
    messages: (prompt, results, stream) => {
      const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "x", content: "seen" }] };
      const messages = [{ role: "user", content: prompt }, ...Array.from({ length: results }, () => result)];
      return ["/v1/messages", { model: "m", stream, messages, tools: [{ name: "Bash", input_schema: parameters }] }];
    },
    responses: (prompt, results, stream) => {
      const result = { type: "function_call_output", call_id: "x", output: "seen" };
      const input = [{ role: "user", content: prompt }, ...Array.from({ length: results }, () => result)];
      return ["/v1/responses", { model: "m", stream, input, tools: [{ type: "function", name: "shell", parameters }] }];
    },
    chat: (prompt, results, stream) => {
      const result = { role: "tool", tool_call_id: "x", content: "seen" };
      const messages = [{ role: "user", content: prompt }, ...Array.from({ length: results }, () => result)];
      const tools = [{ type: "function", function: { name: "bash", parameters } }];
      return ["/v1/chat/completions", { model: "m", stream, messages, tools }];
    },
    gemini: (prompt, results, stream) => {
      const result = { role: "user", parts: [{ functionResponse: { name: "x", response: { output: "seen" } } }] };
      const contents = [{ role: "user", parts: [{ text: prompt }] }, ...Array.from({ length: results }, () => result)];
      const tools = [{ functionDeclarations: [{ name: "run_shell_command", parameters }] }];
      return [`/v1beta/models/m:${stream ? "streamGenerateContent" : "generateContent"}`, { contents, tools }];
    },
  };

for (const [api, asking] of Object.entries(dialects))
  for (const stream of [true, false])
    test(`${api}, ${stream ? "streamed" : "whole"}`, async () => {
      await using model = startFakeModel();
      const ask = async (prompt: string, results = 0): Promise<{ status: number; text: string }> => {
        const [path, body] = asking(prompt, results, stream);
        const answer = await fetch(model.url + path, { method: "POST", body: JSON.stringify(body) });
        return { status: answer.status, text: await answer.text() };
      };
      const call = await ask("<task>\nlook ;; FIRST=I look. ;; BASH=echo seen ;; SAY=it is there\n</task>");
      expect(call).toEqual({ status: 200, text: expect.stringContaining("echo seen") });
      expect(call.text).toContain("I look.");
      expect((await ask("look ;; BASH=echo seen ;; SAY=it is there", 1)).text).toContain("it is there");
      expect((await ask('TOOL=any {"path":"/x"}')).text).toContain("/x");
      expect((await ask("ERR=400")).status).toBe(400);
      expect([(await ask("ERR=529*1 ;; SAY=fine")).status, (await ask("ERR=529*1 ;; SAY=fine")).status]).toEqual([
        529, 200,
      ]);
      const held = ask("HOLD=gate ;; SAY=after all");
      expect(await Promise.race([held, Bun.sleep(50)])).toBeUndefined();
      model.release("gate");
      expect((await held).text).toContain("after all");
      expect((await held).text).toContain(String(usagePerRequest.output));
      expect(model.requests.map(({ answer }) => answer)).toEqual([
        "tool",
        "text",
        "tool",
        "error",
        "error",
        "text",
        "text",
      ]);
      expect(model.requests.every((request) => request.api === api && request.model === "m")).toBe(true);
    });

test("a request for JSON of a given shape does not use up a step of the script", async () => {
  await using model = startFakeModel();
  const responseJsonSchema = { type: "object", properties: { next: { type: "string", enum: ["user"] } } };
  const body = {
    contents: [{ role: "user", parts: [{ text: "SAY=hello" }] }],
    generationConfig: { responseJsonSchema },
  };
  const answer = await fetch(`${model.url}/v1beta/models/m:generateContent`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(await answer.text()).toContain(JSON.stringify(JSON.stringify({ next: "user" })));
});

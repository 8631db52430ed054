import { expect, it } from "vitest";
import { readJsonBody } from "../../src/openai/json-body.js";
import { requestJson, requestJsonInParts } from "../../src/openai/request-fields.js";
import { allParts } from "../../src/turns.js";

/** White space that makes a document long, so that it is parsed in steps. */
const PADDING = " ".repeat(70_000);
const client = { gone: false };
const readLong = (text: string | Uint8Array) =>
  readJsonBody(client, Buffer.concat([Buffer.from(PADDING), Buffer.from(text)]));

it.each([
  '{"a":"\\ud83d","b":"\\ud83d\\ude00","c":"\\u0000\\"\\\\\\/\\b\\f\\n\\r\\t"}',
  '{"a":1,"a":2,"__proto__":{"b":1},"constructor":3,"":4}',
  '{"numbers":[0,-0,1.5,-1e-7,1E+400,123456789012345678901234567890,0.1]}',
  '{"deep":[[[{"a":[true,false,null,{}]}]],[]] }\r\n\t ',
  `{"text":"${"жизнь 😀 ".repeat(20_000)}","escapes":"${"\\n\\\\".repeat(50_000)}"}`,
  `{"list":[${Array.from({ length: 20_000 }, (_, i) => `"${i}"`).join(",")}]}`,
])("a long body has the values of JSON.parse: %.60s", async (text) => {
  expect(await readLong(text)).toEqual(JSON.parse(text));
});

it.each([
  ["nothing", ""],
  ["an end too early", '{"a":[1'],
  ["an open string", '{"a":"b'],
  ["a value too many", "{} {}"],
  ["a comma too many", '{"a":[1,]}'],
  ["a number that JSON does not have", '{"a":NaN}'],
  ["a zero in front", '{"a":01}'],
  ["a control character", '{"a":"\u0001"}'],
  ["a NUL at the end", "{}\0"],
  ["bytes that are not UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
  ["a list", "[]"],
])("a long body with %s is refused as the short one is", async (_name, text) => {
  const refusal = { status: 400, code: "invalid_json" };
  await expect(readLong(text)).rejects.toMatchObject(refusal);
  await expect(readJsonBody(client, Buffer.from(text))).rejects.toMatchObject(
    typeof text === "string" && text.includes("NaN") ? { status: 400, param: "a" } : refusal,
  );
});

it("writes messages in parts as JSON.stringify does", () => {
  const long = `${"a".repeat(16_383)}😀\n"\\ \ud83d`.repeat(3);
  const messages = [
    { role: "user", content: long, name: undefined, parts: [{}, [], null, 1.5, true, ""] },
    { "": long },
  ];
  const text = allParts(requestJsonInParts(messages, "messages"));
  expect(JSON.parse(text)).toEqual(JSON.parse(requestJson(messages, "messages")));
  expect(text.replaceAll("\\ud83d\\ude00", "😀")).toBe(requestJson(messages, "messages"));
});

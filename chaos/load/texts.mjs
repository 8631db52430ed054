import { LEFT, WrongAnswer } from "../oracle/journal.mjs";

const range = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** Formats that take more steps than one may. A title makes each of them another one. */
const HOSTILE = [
  { oneOf: range(120, (i) => ({ properties: { [`p${i}`]: { type: "integer" } } })) },
  { allOf: range(40, (i) => ({ if: { required: [`a${i}`] }, else: { required: [`b${i}`] } })) },
  { type: "number", multipleOf: 999983 },
  { type: "object", properties: Object.fromEntries(range(12_000, (i) => [`p${i}`, {}])) },
  { type: "object", patternProperties: Object.fromEntries(range(200, (i) => [`^a${i}[0-9]*x`, {}])) },
  { type: "string", minLength: 1e5, maxLength: 2e5, pattern: "^([a-z]|[a-m][n-z])*x.{50,60}$" },
];

/** A template that asks for endless work. */
export const HOSTILE_TEMPLATE =
  "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";

const inputs = (schema) => ({
  text_input: "Once there was a fox",
  sampling_parameters: JSON.stringify({ guided_json: schema, max_tokens: 60 }),
});

const hostileSchema = (random) => ({
  ...HOSTILE[random.between(0, HOSTILE.length - 1)],
  title: String(random.between(1, 2 ** 40)),
});

/** The words of an error that a request must get. */
async function refused(answer, words) {
  const error = await answer.then(
    () => undefined,
    (one) => one,
  );
  if (error === undefined) throw new WrongAnswer(`expected an error with '${words}', got an answer`);
  if (!error.message.includes(words)) throw error;
}

/** One text in a small format, of which some are new. */
export async function tellInFormat({ client, model, random }) {
  const numbers = range(3, () => random.between(1, 50));
  const { text_output: text } = await client.generate(model, inputs({ enum: numbers }));
  const written = Number(text.slice("Once there was a fox".length));
  if (!numbers.includes(written)) throw new WrongAnswer(`expected one of ${numbers}, got ${text}`);
}

/** One format that is refused for its work. */
export function sendHostileFormat({ client, model, random }) {
  return refused(client.generate(model, inputs(hostileSchema(random))), "it is too complex");
}

/** Leaves while a format is read. */
export async function leaveHostileFormat({ client, model, random }) {
  const signal = AbortSignal.timeout(random.between(1, 60));
  await client.generate(model, inputs(hostileSchema(random)), { signal }).catch((error) => {
    if (!signal.aborted && !error.message.includes("it is too complex")) throw error;
  });
  return LEFT;
}

/** One chat whose template is refused for its work. */
export function sendHostileTemplate({ client, model }) {
  const messages = JSON.stringify([{ role: "user", content: "Hi" }]);
  return refused(client.generate(model, { messages }), "cannot render the chat template");
}

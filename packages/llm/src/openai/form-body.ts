import { Busboy, type BusboyInstance } from "@fastify/busboy";
import { loopTurns, type V2Request } from "@tritonjs/http/frontend";
import { OpenAiError } from "./openai-error.js";

/** Bytes that are read between two pauses. They take a millisecond at worst. */
const STEP_BYTES = 16 * 1024;

/** Parts of a form, and bytes of one that is not a file. The largest form of OpenAI has a dozen of short ones. */
export const MOST_PARTS = 1024;
export const LONGEST_TEXT = 2 ** 20;

/** The texts of a form by their names, several in a list where the name ends with `[]`, and the files. */
export interface FormBody {
  readonly values: Readonly<Record<string, string | readonly string[]>>;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/**
 * Reads a form with files in turns of the event loop.
 *
 * @param type header `content-type`
 * @throws OpenAiError 400 for a body that is not such a form, 413 for one of too many parts or with a long text;
 * ClientGone when the client leaves
 */
export async function readFormBody(
  client: Pick<V2Request, "gone">,
  type: string,
  body: Uint8Array,
): Promise<FormBody> {
  const values: Record<string, string | string[]> = {};
  const files = new Map<string, Uint8Array>();
  let refusal: OpenAiError | undefined;
  let form: BusboyInstance;
  try {
    const limits = { parts: MOST_PARTS, fieldSize: LONGEST_TEXT };
    form = new Busboy({ headers: { "content-type": type }, limits });
  } catch (cause) {
    throw notForm(cause);
  }
  form.on("field", (name, value, _isNameCut, isCut) => {
    if (isCut) refusal ??= tooLarge(`a text of at most ${LONGEST_TEXT} bytes as '${name}'`);
    values[name] = name.endsWith("[]") ? [...(values[name] ?? []), value] : value;
  });
  form.on("file", (name, stream) => {
    const parts: Buffer[] = [];
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("end", () => files.set(name, Buffer.concat(parts)));
  });
  form.on("partsLimit", () => {
    refusal ??= tooLarge(`at most ${MOST_PARTS} parts`);
  });
  const ended = new Promise<void>((resolve) => {
    form.on("finish", resolve);
    form.on("error", (cause) => {
      refusal ??= notForm(cause);
      resolve();
    });
  });
  await loopTurns.read(client, function* () {
    for (let at = 0; at < body.length && refusal === undefined; at += STEP_BYTES) {
      form.write(body.subarray(at, at + STEP_BYTES));
      yield;
    }
  });
  if (refusal === undefined) {
    form.end();
    await ended;
  }
  if (refusal !== undefined) throw refusal;
  return { values, files };
}

function tooLarge(expected: string): OpenAiError {
  const text = `the form of the request is too large: expected ${expected}, got more`;
  return new OpenAiError(413, text, { code: "content_too_large" });
}

function notForm(cause: unknown): OpenAiError {
  const text = "the body of the request is not a form: expected parts as multipart/form-data has them";
  return Object.assign(new OpenAiError(400, text, { code: "invalid_form" }), { cause });
}

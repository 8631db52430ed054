import {
  answer,
  answerError,
  errorFor,
  type HttpDifference,
  perStep,
  recordedError,
  type StepDraft,
  sentHeader,
  sentText,
  steps,
  tryJson,
} from "./http-draft.js";

const chunksToOldClients = perStep(
  "http10-chunks",
  ({ request, response }) =>
    /1\.0$/.test(request.http_version ?? "") && response.headers?.["Transfer-Encoding"] !== undefined,
  ({ response }) => void delete response.headers?.["Transfer-Encoding"],
);

/** The encoding that a client accepts with blanks after its name. */
function blankEncoding(step: StepDraft): string | undefined {
  const value = sentHeader(step, "accept-encoding") ?? "";
  return /^(gzip|deflate)[ \t]+$/.exec(value)?.[1];
}

const headerBlanks = perStep(
  "header-blanks",
  (step) => step.response.status === 200 && blankEncoding(step) !== undefined,
  (step) => {
    step.response.headers = { ...step.response.headers, "Content-Encoding": blankEncoding(step) as string };
  },
);

/** A `Content-Encoding` without a value: the body is not encoded, and the model returns its input. */
const emptyEncoding = perStep(
  "header-blanks",
  (step) => sentHeader(step, "content-encoding")?.trim() === "" && step.response.status === 501,
  (step) => {
    const [, name = ""] = /^\/v2\/models\/(id_\w+)\/infer/.exec(step.request.path) ?? [];
    const [{ datatype, shape, data }] = JSON.parse(sentText(step)).inputs;
    const outputs = [{ name: "OUTPUT0", datatype, shape, data }];
    answer(step.response, 200, { model_name: name, model_version: "1", outputs });
  },
);

/** Data that cannot be unpacked: the recorded server treated it as no data. */
const brokenCompression: HttpDifference = {
  rule: "broken-compression",
  applies: ({ quirk = "" }) => /inflate data errors are ignored/.test(quirk),
  amend(draft) {
    for (const step of steps(draft)) {
      const encoding = sentHeader(step, "content-encoding");
      answerError(step, 400, `request body is not valid ${encoding} data`, "text/plain");
    }
  },
};

/** A token with more digits than a double has. */
const LONG_NUMBER = /^-?\d{18,}(\.\d+)?(e[-+]?\d+)?$/i;

function numbers(text: string): string[] {
  const data = /"data":\s*\[([^\]]*)\]/.exec(text)?.[1] ?? "";
  return data.split(",").map((token) => token.trim());
}

const nearestDouble = perStep(
  "nearest-double",
  (step) =>
    step.response.status === 200 &&
    /"datatype":"FP64"/.test(step.response.body_text ?? "") &&
    numbers(sentText(step)).some((token) => LONG_NUMBER.test(token)) &&
    numbers(sentText(step)).length === numbers(step.response.body_text ?? "").length,
  (step) => {
    const sent = numbers(sentText(step));
    const { response } = step;
    const data = numbers(response.body_text ?? "").map((token, i) =>
      LONG_NUMBER.test(sent[i] ?? "") ? real(Number(sent[i])) : token,
    );
    response.body_text = response.body_text?.replace(/"data":\[[^\]]*\]/, `"data":[${data.join(",")}]`);
  },
);

function real(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : `${value}`;
}

const indexReady = perStep(
  "index-ready",
  (step) =>
    step.request.path.endsWith("/index") &&
    recordedError(step) === "attempt to access JSON non-boolean as boolean",
  (step) => answerError(step, 400, "Invalid value for 'ready': expected a boolean"),
);

const unloadBody = perStep(
  "unload-body",
  (step) =>
    step.request.path.endsWith("/unload") && sentText(step) !== "" && tryJson(sentText(step)) === undefined,
  (step, got) => {
    const text = errorFor(got);
    if (!/^failed to parse the request JSON buffer: .+ at \d+$/.test(text)) throw new Error(`got "${text}"`);
    answerError(step, 500, text);
  },
);

const badKey = /^Unable to open shared memory region: '(\/?triton_python_backend_shm_region_.*)'$/;

const sharedMemoryKey = perStep(
  "shared-memory-key",
  (step) => badKey.test(recordedError(step) ?? ""),
  (step) => {
    const [, key = ""] = badKey.exec(recordedError(step) as string) as RegExpExecArray;
    const region = /region\/([^/]+)\/register/.exec(step.request.path)?.[1];
    const reserved = "triton_python_backend_shm_region_";
    answerError(
      step,
      400,
      `cannot register shared memory region '${region}' with key '${key}' as the key contains the reserved prefix '${reserved}'`,
    );
  },
);

/** Recorded answers about regions with an offset and keys under two names are wrong: any valid answer is accepted. */
const brokenRegions: HttpDifference = {
  rule: "shared-memory-two-names",
  applies: ({ area, quirk }) => area.startsWith("shm") && quirk !== undefined,
  amend(draft, got) {
    for (const [i, step] of steps(draft).entries()) {
      const came = got[i];
      const isSound = came?.status === 200 || (came?.status !== 500 && errorFor(came) !== "");
      if (came === undefined || !isSound) throw new Error(`step ${i}: got ${came?.status} ${came?.body}`);
      const { status, headers, body } = came;
      const told = ["Content-Type", "Inference-Header-Content-Length"].flatMap((name) => {
        const value = headers.get(name.toLowerCase());
        return value === undefined ? [] : [[name, value]];
      });
      step.response = { status, headers: Object.fromEntries(told), body_b64: body.toString("base64") };
    }
  },
};

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The first file of a load whose content is not base64. */
function brokenFile(step: StepDraft): string | undefined {
  if (!step.request.path.endsWith("/load")) return undefined;
  const sent = tryJson(sentText(step)) as { parameters?: Record<string, unknown> } | null | undefined;
  return Object.entries(sent?.parameters ?? {}).find(
    ([name, value]) => name.startsWith("file:") && typeof value === "string" && !BASE64.test(value),
  )?.[0];
}

const loadFileBase64 = perStep(
  "load-file-base64",
  (step) => brokenFile(step) !== undefined,
  (step) => answerError(step, 400, `load parameter '${brokenFile(step)}': expected base64`),
);

/** The body for a model that is not ready also has the reason, if there is one. */
const readinessReason = perStep(
  "readiness-reason",
  (step) => recordedError(step) === "Model version not ready",
  (step, got) => {
    if (errorFor(got) !== "Model version not ready") throw new Error(`got "${errorFor(got)}"`);
    const { reason } = tryJson(got!.body.toString()) as { reason?: unknown };
    if (reason === undefined) return;
    if (typeof reason !== "string" || reason === "") throw new Error(`got the reason ${String(reason)}`);
    answer(step.response, 400, { error: "Model version not ready", reason }, "text/plain");
  },
);

/** Rules about requests and answers in general. */
export const protocolRules: readonly HttpDifference[] = [
  chunksToOldClients,
  headerBlanks,
  emptyEncoding,
  brokenCompression,
  nearestDouble,
  indexReady,
  unloadBody,
  sharedMemoryKey,
  brokenRegions,
  loadFileBase64,
  readinessReason,
];

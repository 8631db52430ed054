import { toConfigJson } from "@tritonjs/core";
import { describe } from "vitest";
import { compareValues } from "./support/compare-values.js";
import { type ConfigCase, configOutcome } from "./support/config-case.js";
import { toJsonValue } from "./support/json-value.js";
import { loadLines } from "./support/load-cases.js";
import { isPython } from "./support/loads/load-case.js";
import { replay } from "./support/replay.js";

/**
 * What decides these loads is not the configuration: members of an ensemble, files beside it, version directories,
 * resources of the rate limiter, the backend, a warmup request, or a server that ended. They are replayed with the
 * model repository.
 */
const decidedElsewhere = [
  /depends on|not available or ambiguous|in ensemble \w+, |it contains model|circular dependency/,
  /failed to (open text file|stat file)|but the data provided from|at least one version must be available/,
  /model not found in any|has no attribute|SyntaxError|unable to find backend library for backend/,
  /Resource count for|onnx runtime error|warmup setting expects|\[request id: |must return a valid/,
  /expected input and output (shape|datatype)|equal input\/output pairs|pattern, got|only supports CPU instances/,
  /failed to convert|unknown Execution Accelerator|unexpected batch input data type/,
];
/** An ensemble is decoupled when one of its members is. */
const decidedByMembers = /decoupled-member/;

/** Recorded texts: of the parser, of the poll, of the index. */
function recordedText({ log = [], index = [] }: ConfigCase): string {
  const parser = log.filter((line) => line.includes("Error parsing text-format"));
  if (parser.length > 0) return parser.map((line) => line.replace(/^.*(?=Error parsing)/, "")).join("\n");
  const polled = log.map((line) => /Poll failed for model directory '[^']*': (.*)"$/.exec(line)?.[1]);
  return polled.find((text) => text !== undefined) ?? index[0]?.reason ?? log.join("\n");
}

function isOfConfiguration(recorded: ConfigCase): boolean {
  if (recorded.load === undefined || decidedByMembers.test(recorded.id)) return false;
  return recorded.load.status === 200 || !decidedElsewhere.some((text) => text.test(recordedText(recorded)));
}

/** The recorded server lists tensors that it found in a file in the order of their hashes. */
function sorted(config: unknown): unknown {
  const { input, output, ...rest } = config as Record<string, { readonly name: string }[]>;
  const byName = (tensors: readonly { readonly name: string }[] = []) =>
    [...tensors].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { ...rest, input: byName(input), output: byName(output) };
}

function run(recorded: ConfigCase): readonly string[] {
  const outcome = configOutcome(recorded);
  const accepted = recorded.load?.status === 200;
  if ("config" in outcome) {
    if (!accepted) return [`expected the error "${recordedText(recorded)}", got a configuration`];
    const got = toConfigJson(outcome.config);
    return compareValues(toJsonValue(sorted(recorded.config)), toJsonValue(sorted(got)));
  }
  const { stage, text } = outcome;
  if (accepted) return [`expected a configuration, got the error "${text}"`];
  const expectedStage = recorded.load?.status === 400 ? "create" : "poll";
  const words = stage === "poll" ? text.replace(/^[\w ]+: /, "") : text;
  // Ours may say more: where in the text, and all else that is wrong.
  const expected = recordedText(recorded)
    .replace(/(\n\nAt:[\s\S]*|;\n?)$/, "")
    .replace("ValueError: ", "");
  const agrees = stage === expectedStage && words.startsWith(expected);
  return agrees ? [] : [`expected at ${expectedStage} "${expected}", got at ${stage} "${words}"`];
}

function replayConfigurations(file: string): void {
  replay<ConfigCase>({
    cases: loadLines<ConfigCase>(`config/${file}.jsonl`)
      .filter((recorded) => isPython(recorded) && isOfConfiguration(recorded))
      .map((recorded) => ({ ...recorded, id: `${file}/${recorded.id}` })),
    subject: ({ id }) => ({ area: id, features: new Set(), operations: [], flags: [] }),
    run: async (recorded) => run(recorded),
  });
}

describe("recorded configurations", () => replayConfigurations("prototxt"));
describe("recorded completions", () => replayConfigurations("autocomplete"));

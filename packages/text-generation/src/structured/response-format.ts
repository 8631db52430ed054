import { TritonError } from "@tritonjs/protocol";

/** Grammar of a text: a JSON schema, a regular expression, a choice of texts, or a grammar in xgrammar's EBNF. */
export type GrammarSource =
  | { readonly kind: "schema"; readonly schema: string; readonly strict: boolean }
  | { readonly kind: "regex"; readonly pattern: string }
  | { readonly kind: "choice"; readonly texts: readonly string[] }
  | { readonly kind: "grammar"; readonly grammar: string };

/** Longest schema, pattern or grammar, in characters. Its compilation takes time in proportion. */
const MAX_CHARACTERS = 65_536;

/**
 * Fields of a request that ask for a grammar: OpenAI's `response_format`, and vLLM's `structured_outputs` and
 * `guided_json`, `guided_regex`, `guided_choice` and `guided_grammar`.
 */
export type StructuredFields = Readonly<Record<string, unknown>>;

/**
 * Reads the grammar that a request asks for. Undefined if it asks for none, or for `{ type: "text" }`.
 *
 * @throws TritonError INVALID_ARG that names the field, for a form that is not known and for more than one grammar
 */
export function readGrammarSource(fields: StructuredFields): GrammarSource | undefined {
  const sources = [
    ofResponseFormat(fields.response_format),
    ...ofOptions("structured_outputs.", object(fields.structured_outputs, "structured_outputs"), ""),
    ...ofOptions("", fields, "guided_"),
  ].filter((source) => source !== undefined);
  if (sources.length > 1) {
    throw invalid("response_format", "one grammar for the answer", `${sources.length} of them`);
  }
  const source = sources[0];
  if (source !== undefined) checkLength(source);
  return source;
}

function ofResponseFormat(value: unknown): GrammarSource | undefined {
  const format = object(value, "response_format");
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json_object") return { kind: "schema", schema: '{"type":"object"}', strict: false };
  if (format.type !== "json_schema") {
    throw invalid(
      "response_format.type",
      '"text", "json_object" or "json_schema"',
      JSON.stringify(format.type),
    );
  }
  const field = "response_format.json_schema";
  const described = object(format.json_schema, field);
  if (described?.schema === undefined)
    throw invalid(field, 'an object with "schema"', show(format.json_schema));
  return schemaSource(described.schema, `${field}.schema`, described.strict !== false);
}

/** Grammars of vLLM's fields. Those that begin with `guided_` are its older names. */
function ofOptions(
  path: string,
  options: StructuredFields | undefined,
  prefix: string,
): (GrammarSource | undefined)[] {
  if (options === undefined) return [];
  const given = (name: string) => options[`${prefix}${name}`] ?? undefined;
  const field = (name: string) => `${path}${prefix}${name}`;
  const { json, regex, choice, grammar } = {
    json: given("json"),
    regex: given("regex"),
    choice: given("choice"),
    grammar: given("grammar"),
  };
  return [
    json === undefined ? undefined : schemaSource(json, field("json"), true),
    prefix === "" && given("json_object") === true ? ofResponseFormat({ type: "json_object" }) : undefined,
    regex === undefined ? undefined : { kind: "regex", pattern: text(regex, field("regex")) },
    choice === undefined ? undefined : { kind: "choice", texts: texts(choice, field("choice")) },
    grammar === undefined ? undefined : { kind: "grammar", grammar: text(grammar, field("grammar")) },
  ];
}

function schemaSource(value: unknown, field: string, strict: boolean): GrammarSource {
  const schema = typeof value === "string" ? parse(value, field) : value;
  const isSchema =
    typeof schema === "boolean" || (typeof schema === "object" && schema !== null && !Array.isArray(schema));
  if (!isSchema) throw invalid(field, "a JSON schema", show(value));
  return { kind: "schema", schema: JSON.stringify(schema), strict };
}

function parse(value: string, field: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw invalid(field, "a JSON schema", show(value));
  }
}

function checkLength(source: GrammarSource): void {
  const { length } = JSON.stringify(source);
  if (length > MAX_CHARACTERS) {
    throw invalid("response_format", `a grammar of at most ${MAX_CHARACTERS} characters`, `${length}`);
  }
}

function object(value: unknown, field: string): StructuredFields | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "object" && !Array.isArray(value)) return value as StructuredFields;
  throw invalid(field, "an object", show(value));
}

function text(value: unknown, field: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw invalid(field, "a string", show(value));
}

function texts(value: unknown, field: string): readonly string[] {
  const isTexts =
    Array.isArray(value) && value.length > 0 && value.every((entry) => typeof entry === "string");
  if (isTexts) return value;
  throw invalid(field, "an array of strings", show(value));
}

function show(value: unknown): string {
  const shown = JSON.stringify(value) ?? String(value);
  return shown.length > 80 ? `${shown.slice(0, 80)}...` : shown;
}

function invalid(field: string, expected: string, got: string): TritonError {
  return new TritonError("INVALID_ARG", `cannot read ${field}: expected ${expected}, got ${got}`);
}

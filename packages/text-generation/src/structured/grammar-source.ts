import { TritonError } from "@tritonjs/protocol";
import type { ResponseFormat } from "../sampling/sampling-parameters.js";

/** Grammar of a text: a JSON schema, a regular expression, a choice of texts, or a grammar in xgrammar's EBNF. */
export type GrammarSource =
  | { readonly kind: "schema"; readonly schema: string; readonly strict: boolean }
  | { readonly kind: "regex"; readonly pattern: string }
  | { readonly kind: "choice"; readonly texts: readonly string[] }
  | { readonly kind: "grammar"; readonly grammar: string };

/** Longest schema, pattern or grammar, in characters. Its compilation takes time in proportion. */
const MAX_CHARACTERS = 65_536;

/**
 * The grammar of a format; undefined for any text.
 *
 * @throws TritonError INVALID_ARG for a grammar of more than 65,536 characters
 */
export function grammarSource(format: ResponseFormat): GrammarSource | undefined {
  const source = sourceOf(format);
  if (source === undefined) return undefined;
  const { length } = JSON.stringify(source);
  if (length <= MAX_CHARACTERS) return source;
  throw new TritonError(
    "INVALID_ARG",
    `cannot read response_format: expected a grammar of at most ${MAX_CHARACTERS} characters, got ${length}`,
    { reason: "INVALID_INPUT" },
  );
}

function sourceOf(format: ResponseFormat): GrammarSource | undefined {
  switch (format.type) {
    case "text":
      return undefined;
    case "json_object":
      return { kind: "schema", schema: '{"type":"object"}', strict: false };
    case "json_schema":
      return { kind: "schema", schema: JSON.stringify(format.schema), strict: format.strict !== false };
    case "regex":
      return { kind: "regex", pattern: format.pattern };
    case "choice":
      return { kind: "choice", texts: format.texts };
    case "grammar":
      return { kind: "grammar", grammar: format.grammar };
  }
}

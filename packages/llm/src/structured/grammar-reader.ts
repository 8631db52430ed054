import type { ResponseFormat } from "../sampling/sampling-parameters.js";
import { type Regex, Regexes, TooComplex } from "./byte-regex.js";
import { GrammarMachine, UnheldGrammar } from "./grammar.js";
import { type GrammarBudget, OverBudget } from "./grammar-budget.js";
import { grammarOfText } from "./grammar-text.js";
import { type JsonGrammar, jsonGrammar } from "./json-grammar.js";
import { JsonText, PlainLetters } from "./json-text.js";
import { patternRegex, UnheldPattern } from "./pattern.js";
import { InvalidSchema } from "./schema-keywords.js";
import { type TokenBytes, TokenGrammar } from "./token-masks.js";

/** Bytes of the objects of a parsed format, for each character. */
const BYTES_PER_CHARACTER = 6;

/** Formats that a grammar holds. */
type GrammarFormat = Exclude<ResponseFormat, { type: "text" }>;

/** A format that was read. */
interface ReadFormat {
  readonly grammar: TokenGrammar;
  /** Names keywords of a schema that the grammar does not hold; undefined if it holds all. */
  readonly unheld: string | undefined;
}

/**
 * Reads a format, given as JSON.
 *
 * @param budget counts the work and the memory of the reading and of all masks
 * @throws OverBudget if it takes more than the budget; other errors that {@link reasonOf} words
 */
export function readFormat(
  json: string,
  budget: GrammarBudget,
  tokens: TokenBytes,
  endTokens: readonly number[],
): ReadFormat {
  budget.spend(json.length >> 4);
  budget.hold(BYTES_PER_CHARACTER * json.length);
  const { root, regexes, plainChars, unheld } = grammarOf(JSON.parse(json) as GrammarFormat, budget);
  const grammar = new TokenGrammar(new GrammarMachine(regexes, root), tokens, endTokens, plainChars);
  if (unheld.length === 0) return { grammar, unheld: undefined };
  return { grammar, unheld: `the grammar of a JSON schema cannot hold ${unheld.join(", ")}` };
}

function grammarOf(format: GrammarFormat, budget: GrammarBudget): JsonGrammar {
  if (format.type === "json_schema")
    return jsonGrammar(format.schema, format.strict !== false, new JsonText(new Regexes(budget)));
  if (format.type === "json_object")
    return jsonGrammar({ type: "object" }, false, new JsonText(new Regexes(budget)));
  const regexes = new Regexes(budget);
  const others = { regexes, plainChars: new Set<Regex>(), unheld: [] };
  switch (format.type) {
    case "regex": {
      const regex = patternRegex(format.pattern, regexes, new PlainLetters(regexes), true);
      if (!regexes.hasMatch(regex)) throw new UnheldGrammar("no text matches the pattern");
      return { root: { regex }, ...others };
    }
    case "choice":
      return { root: { regex: regexes.any(...format.texts.map((text) => regexes.text(text))) }, ...others };
    case "grammar":
      return { root: grammarOfText(format.grammar, regexes), ...others };
  }
}

/** Keywords of a schema that a grammar cannot hold. */
export class UnheldKeywords extends Error {}

/**
 * The text of the error for a format that cannot be read, or whose text cannot be continued. Other errors are thrown
 * again.
 */
export function faultOf(error: unknown, isBegun: boolean): string {
  if (error instanceof UnheldKeywords) return `cannot read response_format: ${error.message}`;
  const what = isBegun ? "continue the answer in its format" : "read the format of the answer";
  return `cannot ${what}: ${reasonOf(error)}`;
}

function reasonOf(error: unknown): string {
  if (error instanceof InvalidSchema || error instanceof UnheldGrammar) return error.message;
  if (error instanceof UnheldPattern) return `cannot hold a pattern with ${error.message}`;
  if (error instanceof TooComplex) return "it is too complex";
  if (error instanceof OverBudget)
    return `it is too complex: expected at most ${error.limit} ${error.kind}, got more`;
  if (error instanceof RangeError) return "it is nested too deeply";
  throw error;
}

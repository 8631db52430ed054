import { TritonError } from "@tritonjs/protocol";
import type { GrammarSource } from "./grammar-source.js";
import type { ConstraintVocabulary } from "./token-constraint.js";
import {
  type GrammarCompiler,
  openXgrammar,
  type WebXgrammar,
  type XgrammarInstance,
} from "./web-xgrammar.js";

type Grammar = Awaited<ReturnType<WebXgrammar["Grammar"]["fromEBNF"]>>;

/** Grammar that was compiled for a vocabulary. */
export type CompiledGrammar = Awaited<ReturnType<GrammarCompiler["compileGrammar"]>>;

/**
 * White space that an answer may have in a row between the parts of its JSON. Without a limit, a small model may write
 * nothing else until its tokens are spent.
 */
const MAX_WHITE_SPACE = 20;

/**
 * Compiles grammars for a vocabulary. A grammar that the library cannot read aborts its instance, so grammars are first
 * read by an instance of their own, which is replaced after an abort. The instance with the vocabulary stays.
 */
export class VocabularyCompiler {
  #reader: XgrammarInstance | undefined;
  readonly #instance: XgrammarInstance;
  readonly #compiler: GrammarCompiler;

  private constructor(instance: XgrammarInstance, compiler: GrammarCompiler) {
    this.#instance = instance;
    this.#compiler = compiler;
  }

  static async open(
    vocabulary: ConstraintVocabulary,
    endTokens: readonly number[],
  ): Promise<VocabularyCompiler> {
    const { tokens, spelling, size = tokens.length } = vocabulary;
    const instance = openXgrammar();
    const { TokenizerInfo, GrammarCompiler } = instance.library;
    const info = await TokenizerInfo.createTokenizerInfo(tokens, spelling, false, size, endTokens);
    const compiler = await GrammarCompiler.createGrammarCompiler(info, false);
    info.dispose();
    return new VocabularyCompiler(instance, compiler);
  }

  /** The library that compiled grammars belong to. */
  get library(): WebXgrammar {
    return this.#instance.library;
  }

  /** @throws TritonError INVALID_ARG with the library's words for a grammar that it cannot read */
  async compile(source: GrammarSource): Promise<CompiledGrammar> {
    await this.#check(source);
    const grammar = await read(this.library, source);
    try {
      return await this.#compiler.compileGrammar(grammar);
    } finally {
      grammar.dispose();
    }
  }

  async #check(source: GrammarSource): Promise<void> {
    this.#reader ??= openXgrammar();
    const reader = this.#reader;
    try {
      (await read(reader.library, source)).dispose();
    } catch (error) {
      if (this.#reader === reader) this.#reader = undefined;
      const why = reason(reader.takeReport() ?? (error as Error).message);
      throw new TritonError("INVALID_ARG", `cannot compile the format of the answer: ${why}`, {
        cause: error,
      });
    }
  }
}

function read({ Grammar }: WebXgrammar, source: GrammarSource): Promise<Grammar> {
  switch (source.kind) {
    case "schema":
      return Grammar.fromJSONSchema(source.schema, true, 2, [",", ":"], source.strict, MAX_WHITE_SPACE);
    case "regex":
      return Grammar.fromStructuralTag({
        type: "structural_tag",
        format: { type: "regex", pattern: source.pattern },
      });
    case "choice":
      return Grammar.fromEBNF(`root ::= ${source.texts.map(quote).join(" | ")}`);
    case "grammar":
      return Grammar.fromEBNF(source.grammar);
  }
}

/** A text in EBNF. */
function quote(text: string): string {
  const escaped = text
    .replace(/[\\"]/g, "\\$&")
    .replace(/\n/g, "\\n")
    .replace(/\r/g, "\\r")
    .replace(/\t/g, "\\t");
  return `"${escaped}"`;
}

/** Message of a report, without the line of the library's source and the condition that failed. */
function reason(report: string): string {
  return report
    .replace(/^\[FATAL\] \S+:\d+: /, "")
    .replace(/^Check failed: .*? is false: /, "")
    .trim();
}

import { readFileSync } from "node:fs";
import nodeModule from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { TritonError } from "@tritonjs/protocol";

const PACKAGE = "@mlc-ai/web-xgrammar";

/** Object of the library, whose memory `dispose` frees. */
interface Disposable {
  dispose(): void;
}

/** State of a grammar in one text. */
export interface GrammarMatcher extends Disposable {
  acceptToken(token: number): boolean;
  getNextTokenBitmask(): Promise<Int32Array>;
  isTerminated(): boolean;
  reset(): void;
}

/** Compiles grammars for one vocabulary. */
export interface GrammarCompiler extends Disposable {
  compileGrammar(grammar: Disposable): Promise<Disposable>;
}

/** The library, with the parts of it that are used. */
export interface WebXgrammar {
  readonly Grammar: {
    fromEBNF(text: string): Promise<Disposable>;
    fromJSONSchema(
      schema: string,
      anyWhitespace: boolean,
      indent: number,
      separators: [string, string],
      strict: boolean,
      maxWhitespace?: number,
    ): Promise<Disposable>;
    fromStructuralTag(tag: object): Promise<Disposable>;
  };
  readonly TokenizerInfo: {
    createTokenizerInfo(
      tokens: readonly string[],
      spelling: string,
      prependSpace: boolean,
      size: number,
      endTokens: readonly number[],
    ): Promise<Disposable>;
  };
  readonly GrammarCompiler: {
    createGrammarCompiler(info: Disposable, cache: boolean): Promise<GrammarCompiler>;
  };
  readonly GrammarMatcher: {
    createGrammarMatcher(compiled: Disposable): Promise<GrammarMatcher>;
  };
}

/** A copy of the library with a memory of its own. */
export interface XgrammarInstance {
  readonly library: WebXgrammar;
  /** Returns the last report of the library, which replaces an error message. The call clears it. */
  takeReport(): string | undefined;
}

/**
 * Makes an instance of `@mlc-ai/web-xgrammar`. Release 0.1.27 of it cannot be imported: it is a script of the UMD kind
 * in a package that says `"type": "module"`. So this runs the script as a function. Without `process`, the script takes
 * Node for an engine of its own kind, and needs neither `require` nor `import()`, which functions of test runners lack.
 *
 * The library aborts instead of throwing, and writes the reason to the console. So the instance has a console of its
 * own.
 *
 * @throws TritonError UNAVAILABLE if the package is not installed
 */
export function openXgrammar(): XgrammarInstance {
  const file = findPackage();
  let report: string | undefined;
  const console = {
    log: () => {},
    warn: () => {},
    error: (...values: unknown[]) => {
      const text = values.join(" ");
      // The last line only says that the library aborted.
      if (!text.startsWith("Aborted(")) report = text;
    },
  };
  const module = { exports: {} as WebXgrammar };
  scriptOf(file)(module.exports, module, { baseURI: pathToFileURL(file).href }, undefined, console);
  return {
    library: module.exports,
    takeReport() {
      const taken = report;
      report = undefined;
      return taken;
    },
  };
}

const scripts = new Map<string, (...values: unknown[]) => void>();

/** The script of the library as a function, compiled only once because it is a megabyte. */
function scriptOf(file: string): (...values: unknown[]) => void {
  let script = scripts.get(file);
  if (script === undefined) {
    const names = ["exports", "module", "document", "process", "console"];
    const source = `${readFileSync(file, "utf8")}\n//# sourceURL=${pathToFileURL(file).href}`;
    script = new Function(...names, source) as (...values: unknown[]) => void;
    scripts.set(file, script);
  }
  return script;
}

/** Finds the package from here, or else from the program or its directory. */
function findPackage(): string {
  let cause: unknown;
  const program = process.argv[1] === undefined ? [] : [pathToFileURL(process.argv[1]).href];
  for (const from of [import.meta.url, ...program, pathToFileURL(join(process.cwd(), "package.json")).href]) {
    try {
      return nodeModule.createRequire(from).resolve(PACKAGE);
    } catch (error) {
      cause = error;
    }
  }
  throw new TritonError(
    "UNAVAILABLE",
    `cannot limit the answer to a format: expected the package ${PACKAGE}, which is not installed; install it, or leave out response_format`,
    { reason: "PACKAGE_NOT_INSTALLED", cause },
  );
}

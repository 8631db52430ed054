import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../support/python.js";
import { blocks, documents, promisedOutput } from "./markdown.js";
import { compileSnippets, removeSnippets, runSnippet } from "./snippets.js";

/** Code that needs Python runs only where Python is installed. */
const needsPython = ({ where }: { readonly where: string }) => where.startsWith("docs/python-backend.md");

/**
 * Tests that the code of documents compiles, runs, and prints the output that it promises.
 *
 * @param isWanted whether the code of a document, by its path, is tested
 */
export function testSnippets(title: string, isWanted: (path: string) => boolean): void {
  const snippets = documents()
    .flatMap((document) => blocks(document, "ts"))
    .filter(({ where }) => isWanted(where));
  const numbered = snippets.map((snippet, i) => ({ ...snippet, i }));
  const runnable = numbered.filter((snippet) => hasPython || !needsPython(snippet));
  const others = numbered.filter((snippet) => !runnable.includes(snippet));

  describe(title, () => {
    let modules: readonly string[];
    beforeAll(async () => {
      modules = await compileSnippets(snippets);
    });
    afterAll(removeSnippets);

    it("exists", () => {
      expect(snippets.length).toBeGreaterThan(0);
    });

    it.skip.each(others.map(({ where }) => where))(`of %s runs${withoutPython}`, () => {});

    it.each(runnable.map(({ where, code, i }) => [where, code, i] as const))(
      "of %s runs and prints the output it promises",
      async (_where, source, i) => {
        const { code, stdout, stderr } = await runSnippet(modules[i]!).ended;
        expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
        const printed = stdout.trimEnd().split("\n");
        for (const [line, promised] of promisedOutput(source).entries()) {
          // `// [ 5, 11, 17 ] 1: one batch`: the output, then its explanation.
          expect([printed[line], `${printed[line]}: ${promised.split(": ").at(-1)}`]).toContain(promised);
        }
      },
    );
  });
}

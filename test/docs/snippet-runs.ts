import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../support/python.js";
import { blocks, documents, promisedOutput } from "./markdown.js";
import { BLOCK_BEGINS, compileSnippets, removeSnippets, runSnippets } from "./snippets.js";

/** Code that needs Python runs only where Python is installed. */
const needsPython = ({ where }: { readonly where: string }) => where.startsWith("docs/python-backend.md");

/** The document of a block. */
const pageOf = ({ where }: { readonly where: string }) => where.replace(/:\d+$/, "");

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

    const pages = [...new Set(runnable.map(pageOf))];
    it.each(pages)("of %s runs and prints the output it promises", async (page) => {
      const blocks = runnable.filter((block) => pageOf(block) === page);
      const { code, stdout, stderr } = await runSnippets(blocks.map(({ i }) => modules[i]!)).ended;
      const outputs = stdout.split(`${BLOCK_BEGINS}\n`).slice(1);
      const last = blocks[outputs.length - 1]?.where;
      expect({ code, last, stderr: code === 0 ? "" : stderr }).toEqual({
        code: 0,
        last: blocks.at(-1)!.where,
        stderr: "",
      });
      for (const [place, { where, code: source }] of blocks.entries()) {
        const printed = outputs[place]!.trimEnd().split("\n");
        for (const [line, promised] of promisedOutput(source).entries()) {
          // `// [ 5, 11, 17 ] 1: one batch`: the output, then its explanation.
          expect([printed[line], `${printed[line]}: ${promised.split(": ").at(-1)}`], where).toContain(
            promised,
          );
        }
      }
    });
  });
}

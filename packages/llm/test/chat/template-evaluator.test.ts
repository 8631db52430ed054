import { readFileSync } from "node:fs";
import { parse } from "@huggingface/jinja";
import { expect, it } from "vitest";
import { templateValue } from "../../src/chat/python-values.js";
import { RenderBudget } from "../../src/chat/render-budget.js";
import { renderInParts } from "../../src/chat/template-evaluator.js";
import { templateTokens } from "../../src/chat/template-tokens.js";
import { allParts } from "../../src/turns.js";

const recorded = JSON.parse(
  readFileSync(new URL("../fixtures/jinja2-templates.json", import.meta.url), "utf8"),
) as {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly templates: readonly { readonly template: string; readonly text: string | null }[];
};

const variables = {
  ...Object.fromEntries(
    Object.entries(recorded.variables).map(([name, value]) => [
      name,
      templateValue(value, { values: 0, characters: 0 }),
    ]),
  ),
  raise_exception: () => {
    throw new Error("no");
  },
};

it.each(recorded.templates)("renders as jinja2 does: $template", ({ template, text }) => {
  const render = () => {
    const program = parse(templateTokens(template.replace(/\r\n?/g, "\n")));
    return allParts(renderInParts(program, variables, new RenderBudget()));
  };
  if (text === null) expect(render).toThrow();
  else expect(render()).toBe(text);
});

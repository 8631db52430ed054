import { readFileSync } from "node:fs";
import { parse } from "@huggingface/jinja";
import { expect, it } from "vitest";
import { templateValue } from "../../src/chat/python-values.js";
import { evaluateTemplate } from "../../src/chat/template-evaluator.js";
import { templateTokens } from "../../src/chat/template-tokens.js";

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
  const render = () => evaluateTemplate(parse(templateTokens(template.replace(/\r\n?/g, "\n"))), variables);
  if (text === null) expect(render).toThrow();
  else expect(render()).toBe(text);
});

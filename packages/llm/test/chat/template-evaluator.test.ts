import { readFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";
import { expect, it } from "vitest";
import { templateValue } from "../../src/chat/python-values.js";
import { withoutRawBlocks } from "../../src/chat/raw-blocks.js";
import { evaluateTemplate } from "../../src/chat/template-evaluator.js";

const recorded = JSON.parse(
  readFileSync(new URL("../fixtures/jinja2-templates.json", import.meta.url), "utf8"),
) as {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly templates: readonly { readonly template: string; readonly text: string | null }[];
};

const variables = {
  ...Object.fromEntries(
    Object.entries(recorded.variables).map(([name, value]) => [name, templateValue(value)]),
  ),
  raise_exception: () => {
    throw new Error("no");
  },
};

it.each(recorded.templates)("renders as jinja2 does: $template", ({ template, text }) => {
  const render = () => {
    const { template: parsable, rawTexts } = withoutRawBlocks(template.replace(/\r\n?/g, "\n"));
    return evaluateTemplate(new Template(parsable).parsed, { ...variables, ...rawTexts });
  };
  if (text === null) expect(render).toThrow();
  else expect(render()).toBe(text);
});

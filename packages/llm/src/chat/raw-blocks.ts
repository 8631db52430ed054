/** Comments and expressions, in which no block begins; and blocks of raw text, with the spaces before them in their line. */
const RAW_BLOCK =
  /\{#[\s\S]*?#\}|\{\{[\s\S]*?\}\}|(^[ \t]*)?\{%([-+]?)\s*raw\s*(-?)%\}([\s\S]*?)\{%([-+]?)\s*endraw\s*([-+]?)%\}(\n?)/gm;

/**
 * Takes the texts between `{% raw %}` and `{% endraw %}` out of a template, because the library that parses templates
 * does not know these blocks. An expression that prints a variable stands for each of them.
 */
export function withoutRawBlocks(text: string): {
  readonly template: string;
  /** Texts by the names of their variables. */
  readonly rawTexts: Readonly<Record<string, string>>;
} {
  const rawTexts: Record<string, string> = {};
  const template = text.replace(
    RAW_BLOCK,
    (
      found: string,
      space = "",
      before?: string,
      begin?: string,
      raw?: string,
      end?: string,
      after?: string,
      line = "",
    ) => {
      if (raw === undefined) return found;
      const name = `raw_text_${Object.keys(rawTexts).length}__`;
      rawTexts[name] = trimmed(raw, begin === "-", end!);
      // A tag of a block removes the spaces before it in its line, and the line break after it.
      const kept = after === "" ? "" : line;
      return `${before === "+" ? space : ""}{{${before === "-" ? "-" : ""} ${name} ${after === "-" ? "-" : ""}}}${kept}`;
    },
  );
  return { template, rawTexts };
}

function trimmed(raw: string, atStart: boolean, end: string): string {
  const text = atStart ? raw.trimStart() : raw;
  if (end === "-") return text.trimEnd();
  return end === "+" ? text : text.replace(/(^|\n)[ \t]*$/, "$1");
}

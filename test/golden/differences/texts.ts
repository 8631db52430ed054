import type { Difference } from "./difference.js";

const OPEN = "missing required input(s) ].";

/** The text closes a list that it did not open. */
export function missingInputsBrackets<C, G>(): Difference<C, G> {
  return {
    rule: "missing-inputs-brackets",
    applies: (recorded) => JSON.stringify(recorded).includes(OPEN),
    amend: (draft) => editTexts(draft as object, (text) => text.replaceAll(OPEN, OPEN.replace("]", "[]"))),
  };
}

/** Changes every text inside a recording. */
export function editTexts(value: object, edit: (text: string) => string): void {
  const members = value as Record<string, unknown>;
  for (const [key, member] of Object.entries(members)) {
    if (typeof member === "string") members[key] = edit(member);
    else if (typeof member === "object" && member !== null) editTexts(member, edit);
  }
}

import { inOrder } from "./tool-call-family.js";

/** How a model writes its reasoning before the answer. */
export interface ReasoningForm {
  /** Marker before the reasoning. The prompt may end with it. */
  readonly open: string;
  readonly close: string;
  /** Markers around the answer, which are left out. */
  readonly around: readonly string[];
}

const RESPONSE = ["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"] as const;

/** Forms by what a template contains. It belongs to the first one that fits. */
const FORMS: readonly (readonly [fits: Pick<RegExp, "test">, form: ReasoningForm])[] = [
  [/<\|channel>/, { open: "<|channel>thought", close: "<channel|>", around: [] }],
  [/seed:think/, { open: "<seed:think>", close: "</seed:think>", around: [] }],
  [/\[THINK\]/, { open: "[THINK]", close: "[/THINK]", around: [] }],
  [/<\|START_THINKING\|>/, { open: "<|START_THINKING|>", close: "<|END_THINKING|>", around: RESPONSE }],
  [/<\|inner_prefix\|>/, { open: "<|inner_prefix|>", close: "<|inner_suffix|>", around: [] }],
  [
    /\[BEGIN FINAL RESPONSE\]/,
    {
      open: "Here are my reasoning steps:",
      close: "[BEGIN FINAL RESPONSE]",
      around: ["[END FINAL RESPONSE]"],
    },
  ],
  [
    inOrder("<think>", "<response>"),
    { open: "<think>", close: "</think>", around: ["<response>", "</response>"] },
  ],
  [/<\/?think>/, { open: "<think>", close: "</think>", around: [] }],
];

/** Form of the reasoning of a template's model; undefined if the template shows none. */
export function detectReasoning(template: string): ReasoningForm | undefined {
  return FORMS.find(([fits]) => fits.test(template))?.[1];
}

/** Tokens of a form that may be special tokens, which models leave out of their text otherwise. */
export function reasoningTokens({ open, close, around }: ReasoningForm): readonly string[] {
  return [/^<\|channel>/.test(open) ? "<|channel>" : open, close, ...around];
}

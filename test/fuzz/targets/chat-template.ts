import { ChatTemplate } from "@tritonjs/llm";
import { type FuzzTarget, refusalOf } from "../engine/target.js";
import { text } from "../structures/text.js";

const SEEDS = [
  "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}{{ message.content | trim }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}",
  "{%- set ns = namespace(found=false) -%}{%- for m in messages[::-1] if m.role == 'user' -%}{% set ns.found = true %}{%- endfor -%}{{ ns.found }}{{ tools | tojson(indent=2) if tools is defined else '' }}",
  "{% macro show(x, y='z') %}{{ x ~ y }}{% endmacro %}{{ show(messages[0].content) }}{{ strftime_now('%Y-%m-%d') }}{{ raise_exception('no') if messages | length > 9 }}{{ [1, 2] | join(',') | upper }}{{ {'a': 1}.items() | list }}",
];

/** Chat templates, which come with models: a template renders a chat, or is refused. */
export function open(): FuzzTarget {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hello {{ x }} {% y %}" },
  ] as const;
  return {
    seeds: SEEDS.map((seed) => Buffer.from(seed)),
    structure: text,
    maxBytes: 4096,
    tokens: [
      ...[
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{%-",
        "-%}",
        "endfor",
        "endif",
        "for x in",
        "if",
        "else",
        "elif",
        "set",
      ],
      ...[
        "messages",
        "tools",
        "loop.index",
        "namespace()",
        "range(3)",
        "| tojson",
        "| length",
        "| map(attribute='role')",
      ],
      ...[
        "__proto__",
        "constructor",
        ".constructor",
        "['__proto__']",
        "self",
        "macro",
        "is defined",
        "not",
        "~",
        "**",
      ],
      ...[
        "range(1000000000)",
        "'a' * 1000000000",
        "| replace('a', 'b')",
        "strftime_now('%')",
        "raise_exception('x')",
      ],
    ],
    run(input) {
      try {
        const template = ChatTemplate.from(Buffer.from(input).toString("utf8"));
        const prompt = template.render({ messages, addGenerationPrompt: true });
        return typeof prompt === "string" ? "rendered" : "not a text";
      } catch (error) {
        return refusalOf(error);
      }
    },
  };
}

import type { CompletedCommand, CompletedOption, Proposal } from "./completion-tree.js";

/** Makes the completion of zsh. It can be sourced, or be a file `_tritonjs` in a directory of `fpath`. */
export function zshScript(root: CompletedCommand): string {
  const main = `_${root.name}`;
  return `#compdef ${root.name}
# Completion of ${root.name} for zsh.
# For this shell, after compinit: source <(${root.name} completion zsh)
${functionsOf(root, main)}
if [ "\${funcstack[1]}" = "${main}" ]; then
  ${main} "$@"
else
  compdef ${main} ${root.name}
fi
`;
}

/** A function for each command, which calls those of its subcommands. */
function functionsOf(command: CompletedCommand, name: string): string {
  const { commands, options, argument } = command;
  const specs = options.map(optionSpec);
  if (commands.length === 0) {
    const further = argument === undefined ? [] : [quoted(`*:argument:${action(argument)}`)];
    return `${name}() {\n  _arguments ${[...specs, ...further].join(" \\\n    ")}\n}\n`;
  }
  const described = commands.map((one) => quoted(`${colonless(one.name)}:${one.description}`)).join(" ");
  const calls = commands.map((one) => `        ${one.name}) ${name}_${one.name} ;;`).join("\n");
  return `${name}() {
  local curcontext="$curcontext" state
  local -a line commands
  commands=(${described})
  _arguments -C ${specs.join(" \\\n    ")} \\
    '1: :->command' '*:: :->rest'
  case "$state" in
    command) _describe command commands ;;
    rest)
      case "\${line[1]}" in
${calls}
      esac ;;
  esac
}
${commands.map((one) => functionsOf(one, `${name}_${one.name}`)).join("")}`;
}

function optionSpec({ name, description, value, repeats }: CompletedOption): string {
  const text = description.replace(/[[\]\\:]/g, (sign) => `\\${sign}`);
  const start = `${repeats ? "*" : ""}${name}${value === undefined ? "" : "="}[${text}]`;
  return quoted(value === undefined ? start : `${start}:value:${action(value)}`);
}

function action(proposal: Proposal): string {
  if (proposal === "file") return "_files";
  if (proposal === "directory") return "_files -/";
  return proposal.length === 0 ? " " : `(${proposal.join(" ")})`;
}

function colonless(name: string): string {
  return name.replaceAll(":", "\\:");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

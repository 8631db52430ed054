import type { CompletedCommand, Proposal } from "./completion-tree.js";

/**
 * Makes the completion of bash. It works with the bash 3.2 of macOS, and without the package bash-completion. The line
 * is split at spaces here, because readline also splits options at `=`.
 */
export function bashScript(root: CompletedCommand): string {
  const cases = flatten(root, root.name);
  const subcommands = cases.flatMap(({ path, command }) =>
    command.commands.map(({ name }) => `${path} ${name}`),
  );
  const values = cases.flatMap(({ path, command }) =>
    command.options.flatMap(({ name, value }) =>
      value === undefined ? [] : [`      "${path} ${name}") ${assignment(value)} ;;`],
    ),
  );
  const words = cases.map(({ path, command }) => {
    const names = [...command.commands, ...command.options].map(({ name }) => name).join(" ");
    const further = command.argument === undefined ? "" : ` ${assignment(command.argument)}`;
    return `    "${path}") names="${names}"${further} ;;`;
  });
  return `# Completion of ${root.name} for bash.
# For this shell: source <(${root.name} completion bash)
_${root.name}() {
  local line="\${COMP_LINE:0:COMP_POINT}" cur="" option="" path="${root.name}" names="" kind="none" proposed="" prefix="" word
  local -a typed
  read -ra typed <<< "$line"
  case "$line" in
    *[[:space:]]) ;;
    *) cur="\${typed[\${#typed[@]} - 1]}"; typed=("\${typed[@]:0:\${#typed[@]} - 1}") ;;
  esac
  for word in "\${typed[@]:1}"; do
    case "$path $word" in
      ${subcommands.map((name) => `"${name}"`).join(" | ")}) path="$path $word" ;;
    esac
    option="$word"
  done
  COMPREPLY=()
  if [[ "$cur" == --*=* ]]; then
    option="\${cur%%=*}"
    [[ "$COMP_WORDBREAKS" == *=* ]] || prefix="$option="
    cur="\${cur#*=}"
    names=""
  else
    case "$path" in
  ${words.join("\n  ")}
    esac
  fi
  if [[ "$option" == --* && "$option" != *=* ]]; then
    case "$path $option" in
${values.join("\n")}
      *) [[ -n "$names" ]] || return ;;
    esac
    [[ "$kind" == none ]] || names=""
  fi
  local IFS=$'\\n'
  case "$kind" in
    file) COMPREPLY=($(compgen -P "$prefix" -f -- "$cur")) ;;
    directory) COMPREPLY=($(compgen -P "$prefix" -d -- "$cur")) ;;
  esac
  if [[ "\${#COMPREPLY[@]}" -gt 0 ]] && type compopt > /dev/null 2>&1; then compopt -o filenames 2> /dev/null; fi
  IFS=$' \\n'
  COMPREPLY+=($(compgen -P "$prefix" -W "$names $proposed" -- "$cur"))
}
complete -F _${root.name} ${root.name}
`;
}

/** Sets what the script proposes for a value or an argument. */
function assignment(proposal: Proposal): string {
  if (proposal === "file" || proposal === "directory") return `kind=${proposal}`;
  return proposal.length === 0 ? "kind=free" : `kind=words proposed="${proposal.join(" ")}"`;
}

function flatten(command: CompletedCommand, path: string): { path: string; command: CompletedCommand }[] {
  return [{ path, command }, ...command.commands.flatMap((one) => flatten(one, `${path} ${one.name}`))];
}

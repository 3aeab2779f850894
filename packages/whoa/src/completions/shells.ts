import type { OptionTable } from '../command.ts';

/** A command as a shell completes it. */
export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: OptionTable;
  readonly completes: 'tasks' | readonly string[];
}

/** Only what ids are made of: shells expand what they complete. */
const TASKS = "whoa tasks 2>/dev/null | grep -Eo '^t-[A-Za-z0-9_-]+'";

/** Creates the script that makes a shell complete commands and options. */
export const SHELLS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

function bashScript(commands: readonly CompletedCommand[]): string {
  const names = commands.map(({ name }) => name).join(' ');
  // Ask for tasks only where one can stand: it takes a moment.
  const toReplyText = ({ options, completes }: CompletedCommand): string =>
    completes === 'tasks'
      ? `words='${optionNames(options)}'; [[ $current == -* ]] || words="$words $(${TASKS})"`
      : `words='${[...completes, optionNames(options)].join(' ')}'`;
  return `# whoa completions bash
_whoa() {
  local current=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]} words=''
  COMPREPLY=()
  if [[ $COMP_CWORD == 1 ]]; then
    words='${names} help'
  else
    case "$command \${COMP_WORDS[COMP_CWORD - 1]}" in
${lines(commands, ({ name, options }) => [
  ...withValues(options).map(([option, values]) => `      '${name} --${option}') words='${values.join(' ')}' ;;`),
  // Without an answer of ours, bash offers files.
  ...textPattern(name, options).map((pattern) => `      ${pattern}) return ;;`),
])}
      *) case "$command" in
${lines(commands, (command) => [`        ${command.name}) ${toReplyText(command)} ;;`])}
        help) words='${names}' ;;
      esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _whoa whoa`;
}

function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef whoa
_whoa() {
  local -a commands
  commands=(
${lines(commands, ({ name, summary }) => [`    ${quoted(`${name}:${summary}`)}`])}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  case "$words[2] $words[CURRENT-1]" in
${lines(commands, ({ name, options }) => [
  ...withValues(options).map(
    ([option, values]) => `    '${name} --${option}') compadd -- ${values.join(' ')}; return ;;`,
  ),
  ...textPattern(name, options).map((pattern) => `    ${pattern}) _files; return ;;`),
])}
  esac
  case "$words[2]" in
${lines(commands, ({ name, options, completes }) => {
  const own = completes === 'tasks' ? `\${(f)"$(${TASKS})"}` : completes.join(' ');
  return [`    ${name}) compadd -- ${[own, optionNames(options)].join(' ').trim()} ;;`];
})}
    help) _describe command commands ;;
  esac
}
compdef _whoa whoa`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const after = (name: string): string => `complete -c whoa -n '__fish_seen_subcommand_from ${name}'`;
  return `# whoa completions fish
complete -c whoa -f
${lines(commands, ({ name, summary }) => [
  `complete -c whoa -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
])}
${lines(commands, ({ name, options, completes }) => [
  ...withFlags(options).map((option) => `${after(name)} -l ${option}`),
  ...withText(options).map((option) => `${after(name)} -l ${option} -r -F`),
  ...withValues(options).map(([option, values]) => `${after(name)} -l ${option} -x -a '${values.join(' ')}'`),
  ...(completes === 'tasks' ? [`${after(name)} -a "(${TASKS})"`] : []),
  ...(completes !== 'tasks' && completes.length > 0 ? [`${after(name)} -a '${completes.join(' ')}'`] : []),
])}`;
}

function lines(commands: readonly CompletedCommand[], toLines: (command: CompletedCommand) => string[]): string {
  return commands.flatMap(toLines).join('\n');
}

/** One pattern for all options of a command whose value is any text, if there are any. */
function textPattern(name: string, options: OptionTable): string[] {
  const patterns = withText(options).map((option) => `'${name} --${option}'`);
  return patterns.length === 0 ? [] : [patterns.join('|')];
}

function optionNames(options: OptionTable): string {
  return Object.keys(options)
    .map((name) => `--${name}`)
    .join(' ');
}

function withValues(options: OptionTable): (readonly [string, readonly string[]])[] {
  return Object.entries(options).flatMap(([name, { values }]) =>
    values === undefined ? [] : [[name, values] as const],
  );
}

/** Options with a value of any kind. Files are offered for them. */
function withText(options: OptionTable): string[] {
  return Object.keys(options).filter((name) => options[name]!.type === 'string' && options[name]!.values === undefined);
}

function withFlags(options: OptionTable): string[] {
  return Object.keys(options).filter((name) => options[name]!.type === 'boolean');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

import { type Command, type CommandEntry, EXIT, readArguments, UsageError } from '../command.ts';
import { type CompletedCommand, SHELLS } from '../completions/shells.ts';
import { Screen } from '../terminal/screen.ts';

const NAMES = Object.keys(SHELLS);

const help = `whoa completions SHELL

Prints a script that makes your shell complete commands, options and task ids. SHELL is bash, zsh or fish.

  bash   echo 'source <(whoa completions bash)' >> ~/.bashrc
  zsh    echo 'source <(whoa completions zsh)' >> ~/.zshrc
  fish   whoa completions fish > ~/.config/fish/completions/whoa.fish`;

/** The command that describes all commands, itself included, to a shell. */
export function createCompletionsCommand(commands: Readonly<Record<string, CommandEntry>>): Command {
  return {
    help,
    options: {},
    completes: NAMES,
    async run(args, own, system) {
      const { values, positionals } = readArguments(args, {}, 1);
      const shell = NAMES.find((name) => name === positionals[0]);
      if (shell === undefined) throw new UsageError(`expected one of ${NAMES.join(', ')}; use: whoa completions bash`);
      const script = SHELLS[shell]!(await Promise.all(Object.entries(commands).map(completed)));
      const screen = own(new Screen(system, values));
      screen.data({ type: 'completions', shell, script });
      screen.line(script);
      return EXIT.success;
    },
  };
}

const FLAG = { type: 'boolean' } as const;

async function completed([name, { summary, load, isProtocol }]: [string, CommandEntry]): Promise<CompletedCommand> {
  const { options, completes = [] } = (await load()).command;
  return { name, summary, options: { ...options, ...(!isProtocol && { json: FLAG }), help: FLAG }, completes };
}

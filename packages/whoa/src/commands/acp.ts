import { ACP_OPTIONS, OPEN_OPTIONS } from '../agent/agent-options.ts';
import { type Command, readArguments, UsageError, type Use } from '../command.ts';
import type { System } from '../system.ts';

const help = `whoa acp [options]
whoa acp [options] -- COMMAND [ARGUMENT…]     (experimental)

Serves an agent with a shell and file tools to an editor, over the Agent Client Protocol on standard input and output. The editor
starts it; see docs/guides/editors.md for the settings. Prompts are tasks: use 'whoa tasks', 'whoa watch' and 'whoa cancel' on them.

  --model NAME    anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE
  --agent NAME    an agent of the configuration
  --config FILE   the configuration file; defaults to whoa.config.ts in your configuration folder
  --sandbox KIND  what commands may access in the folder of a session: workspace, read-only or none
  --isolate       run each command in a PID namespace, which no process can escape
  --yes           ask only about protected paths and calls that a rule in the configuration covers; needs --sandbox

With COMMAND, works as a proxy between the editor and that agent, and makes the agent stop. Messages pass unchanged. If the agent does
not respond to a cancel in time, the proxy responds for it, closes its questions and calls, and ends the processes that the prompt
started. It restarts an agent that stays stuck. When the editor exits, everything ends. Experimental.

  --wait DURATION      how long the agent may take to respond to a cancel; defaults to 800ms
  --isolate            run the agent in a PID namespace, which no process can escape
  --log FILE           append a record of each stop, one JSON object per line; standard error shows it too
  --sandbox KIND       run the whole agent in the sandbox: workspace or read-only. It can access the current folder, but no keys and no
                       network, except what you list. Each of these can be repeated:
  --folder PATH          a folder that the agent may write to, such as ~/.config/opencode
  --readable PATH        a folder that the agent may read, such as its installation folder
  --key NAME             an environment variable to pass on
  --host NAME            a host that the agent may connect to, such as api.anthropic.com`;

const OPTIONS = { ...OPEN_OPTIONS, ...ACP_OPTIONS } as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const end = args.indexOf('--');
  const { values } = readArguments(end === -1 ? args : args.slice(0, end), OPTIONS);
  // Load only one of them: an editor waits for the proxy, which needs a quarter of what the agent does.
  if (end !== -1) {
    const { runProxy } = await import('../agent/acp-proxy.ts');
    return runProxy(args.slice(end + 1), { values, own, system });
  }
  for (const name of ['wait', 'log', 'folder', 'readable', 'key', 'host'] as const)
    if (values[name] !== undefined) throw new UsageError(`--${name}: only with a command after --`);
  const { serveEditor } = await import('../agent/serve-editor.ts');
  return serveEditor(values, own, system);
}

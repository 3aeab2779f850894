/** How the user started the command, so that hints can be pasted. With npx there is no `whoa` on the path. */
export function commandName(env: NodeJS.ProcessEnv = process.env): string {
  return env['npm_command'] === 'exec' ? 'npx whoa' : 'whoa';
}

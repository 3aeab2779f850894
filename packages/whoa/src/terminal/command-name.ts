/** What a person types to start the command: a hint is to be pasted. npx leaves nothing of that name on the path. */
export function commandName(env: NodeJS.ProcessEnv = process.env): string {
  return env['npm_command'] === 'exec' ? 'npx whoa' : 'whoa';
}

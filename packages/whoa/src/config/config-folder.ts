import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Where a person's configuration is. A relative XDG_CONFIG_HOME is ignored, as its specification says. */
export function configFolder(env: NodeJS.ProcessEnv): string {
  const given = env['XDG_CONFIG_HOME'];
  if (given && isAbsolute(given)) return join(given, 'whoa');
  if (process.platform === 'win32') return join(env['APPDATA'] ?? join(homedir(), 'AppData', 'Roaming'), 'whoa');
  return join(homedir(), '.config', 'whoa');
}

import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** The user's configuration folder. A relative XDG_CONFIG_HOME is ignored, as the XDG specification requires. */
export function configFolder(env: NodeJS.ProcessEnv): string {
  const given = env['XDG_CONFIG_HOME'];
  if (given && isAbsolute(given)) return join(given, 'whoa');
  if (process.platform === 'win32') return join(env['APPDATA'] ?? join(homedir(), 'AppData', 'Roaming'), 'whoa');
  return join(homedir(), '.config', 'whoa');
}

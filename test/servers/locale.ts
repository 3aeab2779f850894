import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SOURCE = '/usr/share/i18n/locales/en_US';

/** Why the locale en_US.UTF-8 cannot be compiled here; `undefined` if it can. */
export const whyNoLocale: string | undefined = existsSync(SOURCE)
  ? undefined
  : `the package 'locales' is not installed`;

/** Compiles en_US.UTF-8, which sorts text differently from its bytes. A process with this environment uses it. */
export function compileLocale(): Disposable & { readonly env: NodeJS.ProcessEnv } {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-locale-'));
  execFileSync('localedef', ['-i', 'en_US', '-f', 'UTF-8', join(folder, 'en_US.UTF-8')]);
  return {
    env: { ...process.env, LOCPATH: folder, LC_ALL: 'en_US.UTF-8' },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

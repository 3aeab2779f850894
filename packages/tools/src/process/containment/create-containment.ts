import { SettingsError } from '@whoa/core';
import { settings } from '@whoa/core/internal';
import { createSandbox } from '../../sandbox/sandbox.ts';
import type { Containment, ContainmentOptions } from './containment.ts';
import { createGroupContainment } from './group-containment.ts';
import { createLinuxContainment } from './linux-containment.ts';
import { readTechnique } from './technique.ts';

const RULES = { technique: settings.anything, isolate: settings.flag, sandbox: settings.anything };

/**
 * Creates a containment with the given technique, or the best one that changes nothing for commands.
 *
 * @returns The containment. Dispose it to end everything in it.
 * @throws {@link SettingsError} when an option is unknown, the technique is unknown, or when a sandbox or `isolate` is combined with one other than `namespace`.
 *
 * @example
 * ```ts
 * import { createBashTool, createContainment } from '@whoa/tools';
 *
 * await using containment = createContainment({ sandbox: 'workspace' });
 * const bash = createBashTool({ cwd: '/srv/project', containment });
 * ```
 */
export function createContainment(given: ContainmentOptions = {}): Containment {
  // A misspelt `sandbox` would be none.
  const options = settings.readSettings<ContainmentOptions>(given, RULES);
  const sandbox = createSandbox(options.sandbox ?? 'none');
  const isIsolated = sandbox !== undefined || options.isolate === true;
  if (isIsolated && (options.technique ?? 'namespace') !== 'namespace') {
    const what = sandbox === undefined ? '`isolate`' : 'a sandbox';
    throw new SettingsError('technique', `expected 'namespace', which ${what} needs, got '${options.technique}'`);
  }
  const technique = readTechnique(isIsolated ? 'namespace' : options.technique);
  if (technique === 'group' || technique === 'taskkill') return createGroupContainment(technique);
  return createLinuxContainment({ technique, sandbox });
}

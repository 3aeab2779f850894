import { createSandbox } from '../../sandbox/sandbox.ts';
import type { Containment, ContainmentOptions } from './containment.ts';
import { createGroupContainment } from './group-containment.ts';
import { createTaggedContainment } from './tagged-containment.ts';
import { defaultTechnique } from './technique.ts';

/**
 * Creates a containment of the kind asked for, or the best that this system offers without privileges.
 *
 * @returns The containment. Dispose it to end everything in it.
 * @throws TypeError when a sandbox is asked for with a technique other than `bubblewrap`.
 *
 * @example
 * ```ts
 * import { createBashTool, createContainment } from '@whoa/tools';
 *
 * await using containment = createContainment({ sandbox: 'workspace' });
 * const bash = createBashTool({ cwd: '/srv/project', containment });
 * ```
 */
export function createContainment(options: ContainmentOptions = {}): Containment {
  const sandbox = createSandbox(options.sandbox ?? 'none');
  if (sandbox !== undefined && (options.technique ?? 'bubblewrap') !== 'bubblewrap') {
    throw new TypeError(`technique: a sandbox is made by bubblewrap, so it cannot be '${options.technique}'`);
  }
  if (sandbox !== undefined) return createTaggedContainment('bubblewrap', { sandbox });
  const { technique = defaultTechnique() } = options;
  if (technique === 'group' || technique === 'taskkill') return createGroupContainment(technique);
  return createTaggedContainment(technique, { cgroupRoot: options.cgroupRoot });
}

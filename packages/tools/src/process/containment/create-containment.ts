import { createSandbox } from '../../sandbox/sandbox.ts';
import type { Containment, ContainmentOptions } from './containment.ts';
import { createGroupContainment } from './group-containment.ts';
import { createTaggedContainment } from './tagged-containment.ts';
import { defaultTechnique } from './technique.ts';

/**
 * Creates a containment with the given technique, or the best one that works without privileges.
 *
 * @returns The containment. Dispose it to end everything in it.
 * @throws TypeError when a sandbox is combined with a technique other than `bubblewrap`.
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
    throw new TypeError(`technique: expected 'bubblewrap', which a sandbox needs, got '${options.technique}'`);
  }
  if (sandbox !== undefined) return createTaggedContainment('bubblewrap', { sandbox });
  const { technique = defaultTechnique() } = options;
  if (technique === 'group' || technique === 'taskkill') return createGroupContainment(technique);
  return createTaggedContainment(technique, { cgroupRoot: options.cgroupRoot });
}

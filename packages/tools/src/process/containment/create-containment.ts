import { createSandbox } from '../../sandbox/sandbox.ts';
import type { Containment, ContainmentOptions } from './containment.ts';
import { createGroupContainment } from './group-containment.ts';
import { createTaggedContainment } from './tagged-containment.ts';
import { readTechnique } from './technique.ts';

/**
 * Creates a containment with the given technique, or the best one that works without privileges.
 *
 * @returns The containment. Dispose it to end everything in it.
 * @throws TypeError when the technique is unknown, or when a sandbox is combined with one other than `bubblewrap`.
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
  const technique = sandbox === undefined ? readTechnique(options.technique) : 'bubblewrap';
  if (technique === 'group' || technique === 'taskkill') return createGroupContainment(technique);
  return createTaggedContainment(technique, { sandbox });
}

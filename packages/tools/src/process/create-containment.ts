import type { Containment, ContainmentOptions } from './containment.ts';
import { createGroupContainment } from './group-containment.ts';
import { createTaggedContainment } from './tagged-containment.ts';
import { defaultTechnique } from './technique.ts';

/** A containment of the kind asked for, or of the best that this system offers without privileges. */
export function createContainment(options: ContainmentOptions = {}): Containment {
  const { technique = defaultTechnique() } = options;
  if (technique === 'group' || technique === 'taskkill') return createGroupContainment(technique);
  return createTaggedContainment(technique, options.cgroupRoot);
}

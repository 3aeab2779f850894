/** How the key of a background task starts. The name of its conversation follows, and then a unique part. */
export const BACKGROUND = 'background/';

const KEY = new RegExp(`^${BACKGROUND}(.*)/[^/]*$`, 's');

/** Returns the conversation that a background task belongs to; undefined for other tasks. */
export function findBackgroundOwner(task: {
  readonly key?: string | undefined;
  readonly conversation?: string | undefined;
}): string | undefined {
  return task.conversation === undefined ? KEY.exec(task.key ?? '')?.[1] : undefined;
}

import type { TaskClient } from '@whoa/server/task-client';
import { useMemo } from 'react';
import { clientFor } from '../api/session.ts';
import type { PageProps } from '../page/page-props.ts';
import { useLive } from '../page/parts.tsx';
import { type FollowedTask, TaskFollower } from './task-follower.ts';

/** Follows a task while the page is open. */
export function useTask({ me, tenant, onLoggedOut, id }: PageProps & { readonly id: string }): {
  readonly client: TaskClient;
  readonly follower: TaskFollower;
  readonly followed: FollowedTask;
} {
  const client = useMemo(() => clientFor(me, tenant), [me, tenant]);
  const follower = useMemo(() => new TaskFollower({ client, id, onLoggedOut }), [client, id, onLoggedOut]);
  return { client, follower, followed: useLive(follower) };
}

import type { TaskStatus, TaskSummary } from '@whoa/tasks';
import { shownStatus } from '../model/shown-status.ts';
import { addresses, navigate, useAddress } from '../page/router.tsx';
import type { TaskFilter } from './task-list.ts';

const STATUSES: readonly TaskStatus[] = ['init', 'running', 'cancelling', 'success', 'failed', 'cancelled'];

/** Cuts the history of a chat. No one started it, and it has no effect itself. */
const INTERNAL_AGENT = 'whoa-chat-history';

const NAMES = ['status', 'agent', 'conversation', 'tenant', 'q'] as const;

/** The parts of a filter, each a parameter of the address. */
export type FilterName = (typeof NAMES)[number];

/** The filter in the address. */
export interface AddressFilter {
  readonly values: Readonly<Partial<Record<FilterName, string>>>;
  /** What the server is asked for. */
  readonly asked: TaskFilter;
  /** Whether a task matches what the server cannot be asked for. Internal tasks match if their agent is chosen. */
  readonly matches: (task: TaskSummary) => boolean;
  readonly set: (name: FilterName, value: string | undefined) => void;
  readonly clear: () => void;
}

export function useFilter(): AddressFilter {
  const { query } = useAddress();
  const given = NAMES.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : []));
  const values = Object.fromEntries(given) as AddressFilter['values'];
  const { status, agent, conversation, q } = values;
  const asked = status === 'waiting' ? 'running' : STATUSES.find((one) => one === status);
  const words = q?.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  return {
    values,
    asked: { status: asked, agent, conversation },
    matches: (task) => {
      if (status === 'waiting' && shownStatus(task) !== 'waiting') return false;
      if (task.agent === INTERNAL_AGENT && agent === undefined) return false;
      const text = `${task.id} ${task.title ?? ''} ${task.conversation ?? ''} ${task.agent}`.toLowerCase();
      return words.every((word) => text.includes(word));
    },
    set: (name, value) => {
      const next = new URLSearchParams(query);
      if (value === undefined || value === '') next.delete(name);
      else next.set(name, value);
      const text = next.toString();
      navigate(addresses.tasks(text === '' ? '' : `?${text}`), { replace: name === 'q' });
    },
    clear: () => navigate(addresses.tasks()),
  };
}

import type { TaskClient } from '@whoa/server/task-client';
import type { TaskCounts, TaskStatus } from '@whoa/tasks';
import { type ReactNode, useEffect, useState } from 'react';
import { formatWhole } from '../model/format.ts';
import type { ShownStatus } from '../model/shown-status.ts';
import { Status } from '../page/parts.tsx';
import { addresses, Link } from '../page/router.tsx';
import type { AddressFilter, FilterName } from './use-filter.ts';

const ORDER: readonly TaskStatus[] = ['running', 'cancelling', 'init', 'failed', 'success', 'cancelled'];

interface StatusCountsProps {
  readonly counts: TaskCounts | undefined;
  readonly filter: AddressFilter;
}

/** How many tasks have each status; each is a link to them. */
export function StatusCounts({ counts, filter }: StatusCountsProps): ReactNode {
  const { status: current, tenant } = filter.values;
  const to = (status?: string): string => {
    const query = new URLSearchParams({ ...filter.values, ...(status && { status }) });
    if (status === undefined) query.delete('status');
    const text = query.toString();
    return addresses.tasks(text === '' ? '' : `?${text}`);
  };
  const formatCount = (status: TaskStatus): string => {
    if (counts === undefined) return '';
    const count = counts.statuses[status];
    return `${formatWhole(count)}${count >= counts.limit ? '+' : ''}`;
  };
  return (
    <nav className="counts" aria-label={tenant === undefined ? 'By status' : `By status, in ${tenant}`}>
      <Link to={to()} isCurrent={current === undefined}>
        All
      </Link>
      <Link to={to('waiting')} isCurrent={current === 'waiting'}>
        <Status status="waiting" />
      </Link>
      {ORDER.map((status) => (
        <Link key={status} to={to(status)} isCurrent={current === status}>
          <Status status={status as ShownStatus} /> <b>{formatCount(status)}</b>
        </Link>
      ))}
    </nav>
  );
}

interface FiltersProps {
  readonly filter: AddressFilter;
  readonly agents: readonly string[];
  readonly client: TaskClient;
  readonly isOperator: boolean;
}

/** The other filters, as chips, and what can be added. */
export function Filters({ filter, agents, client, isOperator }: FiltersProps): ReactNode {
  const tenants = useTenants(client, isOperator);
  const { agent, conversation, tenant, q } = filter.values;
  return (
    <div className="row">
      <Chip name="tenant" value={tenant} filter={filter} />
      <Chip name="agent" value={agent} filter={filter} />
      <Chip name="conversation" value={conversation} filter={filter} />
      {tenant === undefined && tenants.length > 1 && <Choice name="tenant" values={tenants} filter={filter} />}
      {agent === undefined && agents.length > 0 && <Choice name="agent" values={agents} filter={filter} />}
      <input
        className="push wide"
        type="search"
        size={28}
        aria-label="Search the tasks that are loaded"
        placeholder="Id, conversation or words"
        value={q ?? ''}
        onChange={(event) => filter.set('q', event.target.value)}
      />
    </div>
  );
}

interface ChipProps {
  readonly name: FilterName;
  readonly value: string | undefined;
  readonly filter: AddressFilter;
}

function Chip({ name, value, filter }: ChipProps): ReactNode {
  if (value === undefined) return null;
  return (
    <span className="chip">
      {name} <b>{value}</b>
      <button type="button" aria-label={`Remove filter: ${name}`} onClick={() => filter.set(name, undefined)}>
        ×
      </button>
    </span>
  );
}

interface ChoiceProps {
  readonly name: FilterName;
  readonly values: readonly string[];
  readonly filter: AddressFilter;
}

function Choice({ name, values, filter }: ChoiceProps): ReactNode {
  return (
    <select aria-label={`Filter by ${name}`} value="" onChange={(event) => filter.set(name, event.target.value)}>
      <option value="">any {name}</option>
      {values.map((value) => (
        <option key={value} value={value}>
          {value}
        </option>
      ))}
    </select>
  );
}

function useTenants(client: TaskClient, isOperator: boolean): readonly string[] {
  const [tenants, setTenants] = useState<readonly string[]>([]);
  useEffect(() => {
    if (!isOperator) return;
    client.tenants({ limit: 1_000 }).then(
      (page) => setTenants(page.tenants),
      () => setTenants([]),
    );
  }, [client, isOperator]);
  return tenants;
}

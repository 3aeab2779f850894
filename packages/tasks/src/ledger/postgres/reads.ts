import type { ListPage } from '../../store.ts';
import type { ConversationRecord, ConversationRef, JournalEntry, TaskRecord, TaskRef } from '../../task.ts';
import type { ListRequest, ReadRequest, StoreRules } from '../driver.ts';
import { hashClaim } from '../rules/claim-hash.ts';
import { type DatabaseFunctions, MAX_INT } from './functions.ts';
import { present, type RecordRow, type SummaryRow, toRecord, toSummary } from './rows.ts';
import { checkNames } from './text.ts';

/** Read queries. They hide tasks past their retention, whether or not they have been removed yet. */
export abstract class Reads {
  protected readonly functions: DatabaseFunctions;
  protected readonly rules: StoreRules;

  constructor(functions: DatabaseFunctions, rules: StoreRules) {
    this.functions = functions;
    this.rules = rules;
  }

  async get({ tenant, id }: TaskRef): Promise<TaskRecord | undefined> {
    checkNames({ tenant, id });
    const values = { p_tenant: tenant, task_id: id };
    const retention_ms = (): number => this.rules.retentionMs;
    type Found = RecordRow | { readonly isDue: true } | null;
    let found = await this.functions.read<Found>('get', 'get_task', { ...values, retention_ms });
    if (found !== null && 'isDue' in found)
      found = await this.functions.call<RecordRow | null>('get', 'get_due_task', values);
    return found === null ? undefined : toRecord(found);
  }

  async list({ tenant, status, conversation, backgroundOf, limit, after }: ListRequest): Promise<ListPage> {
    checkNames({ tenant, conversation });
    checkNames({ tenant, conversation: backgroundOf });
    const kind = { of_status: status ?? null, of_conversation: conversation ?? null };
    const of = { p_tenant: tenant, ...kind, of_background: backgroundOf ?? null };
    const before = { before_at: after?.createdAt ?? null, before_id: after?.id ?? null, page: limit + 1 };
    type Page = { readonly now: number; readonly tasks: readonly SummaryRow[] };
    const { now, tasks: found } = await this.functions.read<Page>('list', 'list_tasks', { ...of, ...before });
    const shown = found.slice(0, limit).map(toSummary);
    const last = shown.at(-1);
    const tasks = shown.filter(({ endedAt = Infinity }) => endedAt > now - this.rules.retentionMs);
    return found.length > limit && last ? { tasks, next: `${last.createdAt}/${last.id}` } : { tasks };
  }

  async read({ tenant, id }: TaskRef, { after, limit }: ReadRequest): Promise<readonly JournalEntry[]> {
    checkNames({ tenant, id });
    const task = { p_tenant: tenant, task_id: id };
    const page = { after: Math.min(after, MAX_INT), page: limit, retention_ms: () => this.rules.retentionMs };
    type Row = Omit<JournalEntry, 'claimHash'> & { readonly claim: string };
    const rows = await this.functions.read<readonly Row[]>('read', 'read_journal', { ...task, ...page });
    return rows.map(({ claim, ...entry }) => ({ ...entry, claimHash: hashClaim(claim) }));
  }

  async conversation({ tenant, conversation }: ConversationRef): Promise<ConversationRecord | undefined> {
    checkNames({ tenant, conversation });
    const retention_ms = (): number => this.rules.conversationRetentionMs;
    const values = { p_tenant: tenant, of_conversation: conversation, retention_ms };
    const found = await this.functions.read<ConversationRecord | null>('conversation', 'get_conversation', values);
    return found === null ? undefined : (present(found) as ConversationRecord);
  }
}

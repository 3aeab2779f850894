import type { ClaimRequest, ClaimResult } from '../../delivery/worker-store.ts';
import type { StoreRules } from '../driver.ts';
import type { NamedValues } from './connection/database.ts';
import type { DatabaseFunctions } from './functions.ts';
import { type ShownTaken, toTaken } from './rows.ts';
import { checkText } from './text.ts';

export interface Claiming {
  readonly functions: DatabaseFunctions;
  readonly rules: StoreRules;
}

export async function claimTask(
  id: string,
  request: Required<ClaimRequest>,
  { functions, rules }: Claiming,
): Promise<ClaimResult> {
  checkText('id', id);
  type Claimed = { readonly result: 'claimed'; readonly now: number; readonly tasks: readonly [ShownTaken] };
  type Other = Exclude<ClaimResult, { result: 'claimed' }>;
  const values = { task_id: id, ...toHolder(request, rules), max_attempts: rules.maxAttempts };
  const answer = await functions.call<Claimed | Other>('claim', 'claim', values);
  return answer.result === 'claimed' ? { result: 'claimed', ...toTaken(answer.tasks[0], answer.now) } : answer;
}

/** Claims tasks in one step, except those that may change others: they follow one by one. */
export async function claimTasks(
  ids: readonly string[],
  request: Required<ClaimRequest>,
  claiming: Claiming,
): Promise<readonly ClaimResult[]> {
  for (const id of ids) checkText('ids', id);
  type Refused = readonly (readonly [id: string, why: ClaimResult])[];
  type Claimed = { readonly now: number; readonly refused: Refused; readonly tasks?: readonly ShownTaken[] };
  const values = { ids: [...new Set(ids)], ...toHolder(request, claiming.rules) };
  const { now, refused, tasks = [] } = await claiming.functions.call<Claimed>('claim', 'claim_many', values);
  const answers = new Map(refused);
  const taken = tasks.map((task) => toTaken(task, now));
  for (const one of taken) answers.set(one.task.id, { result: 'claimed', ...one });
  for (const id of ids) if (!answers.has(id)) answers.set(id, await claimTask(id, request, claiming));
  return ids.map((id) => answers.get(id)!);
}

function toHolder(
  { session, worker, leaseMs, claim, maxBytes }: Required<ClaimRequest>,
  rules: StoreRules,
): NamedValues {
  for (const [name, value] of Object.entries({ session, worker, claim })) checkText(name, value);
  const limits = { max_bytes: maxBytes, retention_ms: () => rules.retentionMs };
  return { session_id: session, p_worker: worker, of_lease_ms: leaseMs, own_claim: claim, ...limits };
}

import * as fc from 'fast-check';
import { createQuestionId, type QuestionClose } from '../../../packages/tasks/src/question.ts';
import { type Made, TENANTS } from './made.ts';
import { index, LEASE_MS, toPlans } from './requests.ts';

const getPosition = (made: Made, id: string): number => made.tasks.find((task) => task.id === id)?.position ?? 0;

/** Asks one to three questions, mostly new ones. No two expire at the same time, because either could be first. */
const asked = fc.tuple(index, fc.nat(2), fc.constantFrom(undefined, 500, LEASE_MS, 30_000), fc.nat(11));
export const asks = toPlans('ask', asked, ([i, more, expiresMs, old]) => (made) => {
  const claim = made.claim(i);
  const questions = Array.from({ length: more + 1 }, (_, n) => ({
    id: old === 0 ? made.question(n) : createQuestionId(claim.id, made.step * 10 + n),
    callId: `call ${n}`,
    kind: (['approve', 'answer', 'client'] as const)[n]!,
    shown: `digest ${made.step}`,
    ...(expiresMs !== undefined && { expiresMs: expiresMs + 7 * made.step + n }),
  }));
  const batch = { after: getPosition(made, claim.id), events: ['?'], asks: questions };
  return {
    call: (store) => store.append(claim, batch),
    learn(result: { readonly throws?: string }) {
      if (result.throws === undefined) made.questions.push(...questions.map(({ id }) => id));
    },
  };
});

/** Answers: mostly of the question's own tenant, sometimes under a nonce that was used. */
const answered = fc.tuple(index, fc.nat(9), fc.nat(7), fc.constantFrom('ada', 'bob', undefined));
export const answers = toPlans('answer', answered, ([i, other, nonce, by]) => (made) => {
  const id = made.question(i);
  const own = made.tasks.find((task) => id.startsWith(`${task.id}.`))?.tenant ?? TENANTS[0]!;
  const ref = { id, tenant: other === 0 ? TENANTS[1]! : own };
  const request = { nonce: `a${nonce < 2 ? nonce : made.step}` };
  return { call: (store) => store.answer(ref, { value: { yes: nonce, text: 'ñ\u0000\n' }, by }, request) };
});

/** Parks, usually at the position that the holder should have seen. */
export const parks = toPlans('park', fc.tuple(index, fc.nat(9)), ([i, late]) => (made) => {
  const claim = made.claim(i);
  const { position = 0, orderNumber = 0 } = made.tasks.find(({ id }) => id === claim.id) ?? {};
  const seen = { position: position - Number(late === 0), orderNumber: orderNumber - Number(late === 1) };
  return { call: (store) => store.park(claim, seen) };
});

const whys = fc.constantFrom<QuestionClose['why']>('answered', 'answered', 'outdated', 'journaled', 'journaled');
const closed = fc.tuple(index, index, whys, fc.nat(3));
export const closes = toPlans('close', closed, ([i, q, why, more]) => (made) => {
  const claim = made.claim(i);
  const own = made.questions.filter((id) => id.startsWith(`${claim.id}.`));
  const first = own.at(-1 - (q % Math.max(1, own.length))) ?? createQuestionId(claim.id, 'none');
  const others = more === 0 ? own.filter((id) => id !== first).slice(0, 1) : [];
  const batch = {
    after: getPosition(made, claim.id),
    events: ['!'],
    closes: [first, ...others].map((id) => ({ id, why })),
  };
  return { call: (store) => store.append(claim, batch) };
});

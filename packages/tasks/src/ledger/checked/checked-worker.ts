import type { Offer, SessionRef, WorkerStore } from '../../delivery/worker-store.ts';
import type { StoreDriver } from '../driver.ts';
import { DEFAULTS, LIMITS } from '../rules/rules.ts';
import { boundOutcome, checkActivity, checkQuestions, checkRequest, serializeJson } from './checked-arguments.ts';
import { checkClaim, checkCount, checkDuration, checkLimit, checkName } from './checks.ts';

/** The most offers of one take, because it is one step on the server. */
const MAX_OFFERS = 100;

type CheckedWorker = Omit<WorkerStore, 'watch'>;

/** Returns the worker's part of a store: it checks arguments, fills in defaults, and bounds what is written. */
export function createCheckedWorker(
  open: () => StoreDriver,
  { maxJournalBytes }: Pick<WorkerStore, 'maxJournalBytes'>,
): CheckedWorker {
  return {
    maxJournalBytes,
    ...createCheckedTakes(open),
    async claim(id, request) {
      const driver = open();
      checkName('id', id);
      checkRequest(request);
      return driver.claim(id, { ...request, maxBytes: request.maxBytes ?? DEFAULTS.maxBytes });
    },
    async claimMany(ids, { maxBytes = DEFAULTS.maxBytes, ...request }) {
      checkLimit('ids', ids.length || 1);
      for (const id of ids) checkName('ids', id);
      checkRequest(request);
      return ids.length > 0 ? open().claimMany(ids, { ...request, maxBytes }) : [];
    },
    async load(claim) {
      return open().load(checkClaim(claim));
    },
    async heartbeat(heartbeat) {
      checkSession(heartbeat);
      return open().heartbeat({ ...heartbeat, confirmed: heartbeat.confirmed ?? [] });
    },
    async held(session) {
      checkSession(session);
      return open().held(session);
    },
    async sweep({ limit = LIMITS.maxPromoted } = {}) {
      return open().sweep({ limit: Math.min(checkLimit('limit', limit), LIMITS.maxPromoted) });
    },
    async append(claim, { after, events, done = [], declined = [], resetsAttempts = false, ...batch }) {
      // Deduplicate: the size of an entry would be subtracted twice.
      const replaces = [...new Set(batch.replaces)];
      const activity = batch.activity && checkActivity(batch.activity, claim);
      const texts = events.map(serializeJson);
      const said = events.map((_, index) => batch.said?.[index] ?? after + index + 1);
      const questions = checkQuestions(claim, { ...batch, events });
      const rest = { replaces, done, declined, resetsAttempts, activity, ...questions };
      return open().append(checkClaim(claim), { after, events: texts, said, ...rest });
    },
    show(words) {
      open().show(words);
    },
    async release(claim, { delayMs } = {}) {
      const roundedMs = delayMs === undefined ? 0 : Math.ceil(checkDuration('delayMs', delayMs));
      return open().release(checkClaim(claim), roundedMs);
    },
    async park(claim, { position, orderNumber }) {
      return open().park(checkClaim(claim), { position, orderNumber });
    },
    async finish(claim, { history, newMessages = [], ...outcome }) {
      const messages = [...(history ?? []), ...newMessages].map(serializeJson);
      const end = { outcome: boundOutcome(outcome), newMessages: messages, replacesHistory: history !== undefined };
      return open().finish(checkClaim(claim), end);
    },
  };
}

function createCheckedTakes(open: () => StoreDriver): Pick<CheckedWorker, 'take' | 'noteOffered'> {
  return {
    async take(request) {
      const driver = open();
      checkSession(request);
      checkRequest(request);
      checkCount('number', request.takeNumber);
      checkLimit('limit', request.limit);
      for (const agent of request.agents) checkName('agents', agent);
      checkOffers(request.offers ?? []);
      return driver.take({ ...request, maxBytes: request.maxBytes ?? DEFAULTS.maxBytes });
    },
    async noteOffered(ids) {
      for (const id of ids) checkName('ids', id);
      const driver = open();
      for (let i = 0; i < ids.length; i += LIMITS.maxOffers)
        await driver.noteOffered(ids.slice(i, i + LIMITS.maxOffers));
    },
  };
}

const checkSession = ({ session }: SessionRef): void => checkName('session', session);

function checkOffers(offers: readonly Offer[]): void {
  if (offers.length > MAX_OFFERS) throw new RangeError(`offers: expected at most ${MAX_OFFERS}, got ${offers.length}`);
  for (const { agent, tenant, id = 'none' } of offers)
    for (const [name, value] of Object.entries({ agent, tenant, id })) checkName(`offers.${name}`, value);
}

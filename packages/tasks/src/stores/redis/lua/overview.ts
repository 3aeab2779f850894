import { MAX_SHOWN_TASKS } from '../../../overview.ts';
import { toLua } from '../../../rules/literals.ts';
import { LIMITS } from '../../../rules/rules.ts';
import { STATUS_TABLE } from '../../../status.ts';

/** Counts a tenant's tasks by status, in the order of the table. */
export const COUNTS: string = /* lua */ `
local counts = {}
for i, status in ipairs(${toLua(Object.keys(STATUS_TABLE))}) do
  counts[i] = redis.call('ZCARD', tag .. 'status:' .. status .. ':' .. ARGV[5])
end
return counts
`;

/** Lists names of tenants after a given one. */
export const TENANTS: string = /* lua */ `
local after = ARGV[5] == '' and '-' or '(' .. ARGV[5]
return redis.call('ZRANGE', tag .. 'tenants', after, '+', 'BYLEX', 'LIMIT', 0, ARGV[6])
`;

/** Sessions that hold tasks, and workers that wait. */
export const WORKERS: string = /* lua */ `
local limit, sessions, waiters = tonumber(ARGV[5]), {}, {}
local flat = redis.call('ZRANGE', tag .. 'sessions', 0, limit - 1, 'WITHSCORES')
for i = 1, #flat, 2 do
  local held = redis.call('HKEYS', tag .. 'held:' .. flat[i])
  local worker = redis.call('HGET', tag .. 'session:' .. flat[i], 'worker')
  if worker and #held > 0 then
    local shown = {}
    for n = 1, math.min(#held, ${MAX_SHOWN_TASKS}) do shown[n] = held[n] end
    sessions[#sessions + 1] = { worker, tostring(#held), flat[i + 1], shown }
  end
end
local waiting = redis.call('ZRANGE', tag .. 'waiters:*', now - ${LIMITS.parkedMs}, '+inf', 'BYSCORE', 'LIMIT', 0, limit)
for _, worker in ipairs(waiting) do
  local noted = redis.call('HGET', tag .. 'waiting', worker)
  if noted then waiters[#waiters + 1] = { worker, string.match(noted, '^%S+ %S+ (.*)$') } end
end
return { sessions, waiters, tostring(now) }
`;

import { SEEN_MS } from '../../../migration/migrator.ts';

/** How far the migration of a shard is. */
export const STEPS: string = /* lua */ `
return { tostring(format), redis.call('HGETALL', tag .. 'steps') }
`;

/** Changes a part of a shard: everything before and after `fill` of a step. */
export function partOf(fill: string): string {
  return /* lua */ `
local name, size = ARGV[5], tonumber(ARGV[6])
local position, rest, rows = redis.call('HGET', tag .. 'steps', name) or '', nil, 0
if position == 'done' then return { '1', 0 } end
${fill}
redis.call('HSET', tag .. 'steps', name, rest or 'done')
return { rest and '0' or '1', rows }
`;
}

/** The workers that hold tasks and cannot use a format. */
export const HOLDING: string = /* lua */ `
local to, holding = tonumber(ARGV[5]), {}
for _, id in ipairs(redis.call('ZRANGE', tag .. 'sessions', now, '+inf', 'BYSCORE')) do
  local found = redis.call('HMGET', tag .. 'session:' .. id, 'worker', 'format')
  local isOlder = found[1] and tonumber(found[2] or 0) < to
  if isOlder and redis.call('HLEN', tag .. 'held:' .. id) > 0 then holding[#holding + 1] = found[1] end
end
`;

/** Those workers, and the ones that wait for tasks. */
export const OLDER_WORKERS: string = /* lua */ `
local others = {}
local waiting = redis.call('HGETALL', tag .. 'waiting')
for i = 1, #waiting, 2 do
  local at, of = string.match(waiting[i + 1], '^(%S+) (%S+) ')
  if tonumber(at) > now - ${SEEN_MS} and tonumber(of) < to then others[#others + 1] = waiting[i] end
end
return { holding, others }
`;

/** Writes a new format, unless older workers hold tasks. Returns those. */
export const FINISH_FORMAT: string = /* lua */ `
if #holding > 0 then return holding end
for i = 6, #ARGV do redis.call('HSETNX', tag .. 'steps', ARGV[i], '') end
redis.call('HSET', tag .. 'layout', 'format', math.max(format, to))
return holding
`;

import { MAX_SHOWN_TASKS } from '../../../overview.ts';
import { toLua } from '../../../rules/literals.ts';
import { LIMITS, SUSPECTS, UNDO } from '../../../rules/rules.ts';
import { byStatus, isFinalStatus, STATUS_TABLE } from '../../../status.ts';

/** Counts a tenant's tasks by status, in the order of the table, without those past their retention. */
export const COUNTS: string = /* lua */ `
local isFinal, counts = ${toLua(byStatus(isFinalStatus))}, {}
for i, status in ipairs(${toLua(Object.keys(STATUS_TABLE))}) do
  local group = status .. ':' .. ARGV[5]
  counts[i] = isFinal[status] and redis.call('ZCOUNT', tag .. 'ended:' .. group, '(' .. now - retention, '+inf')
    or redis.call('ZCARD', tag .. 'status:' .. group)
end
return counts
`;

/** Lists names of tenants after a given one. */
export const TENANTS: string = /* lua */ `
local after = ARGV[5] == '' and '-' or '(' .. ARGV[5]
return redis.call('ZRANGE', tag .. 'tenants', after, '+', 'BYLEX', 'LIMIT', 0, ARGV[6])
`;

/** How many ids of tasks a list of workers has, in all. */
const MAX_SHOWN = 2_000;

/** Sessions that hold tasks, and workers that wait. */
export const WORKERS: string = /* lua */ `
local limit, sessions, waiters = tonumber(ARGV[5]), {}, {}
local flat = redis.call('ZRANGE', tag .. 'sessions', 0, limit - 1, 'WITHSCORES')
local shown = math.min(${MAX_SHOWN_TASKS}, math.ceil(2 * ${MAX_SHOWN} / math.max(1, #flat)))
for i = 1, #flat, 2 do
  local held = redis.call('HLEN', tag .. 'held:' .. flat[i])
  local worker = redis.call('HGET', tag .. 'session:' .. flat[i], 'worker')
  if worker and held > 0 then
    sessions[#sessions + 1] = { worker, tostring(held), flat[i + 1], redis.call('HRANDFIELD', tag .. 'held:' .. flat[i], shown) }
  end
end
local waiting = redis.call('ZRANGE', tag .. 'waiters:*', now - ${LIMITS.parkedMs}, '+inf', 'BYSCORE', 'LIMIT', 0, limit)
for _, worker in ipairs(waiting) do
  local noted = redis.call('HGET', tag .. 'waiting', worker)
  if noted then waiters[#waiters + 1] = { worker, string.match(noted, '^%S+ (.*)$') } end
end
return { sessions, waiters, tostring(now) }
`;

/** Lists queues after a given one, and what is paused. */
export const QUEUES: string = /* lua */ `
-- Within a priority, tasks are in order of time.
local function time_of(score)
  return score - math.floor(score / 1e13) * 1e13
end

local function oldest_in(key, count)
  if count == 1 then return time_of(tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])) end
  local oldest, from = math.huge, '-inf'
  while true do
    local first = redis.call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    if not first[1] then return oldest end
    local score = tonumber(first[2])
    local rank = math.floor(score / 1e13)
    oldest, from = math.min(oldest, time_of(score)), string.format('%.0f', (rank + 1) * 1e13)
  end
end

local limit, queues, agents = tonumber(ARGV[7]), {}, {}
local after = ARGV[5] == '' and '-' or '(' .. pair(ARGV[5], ARGV[6])
for i, name in ipairs(redis.call('ZRANGE', tag .. 'queues', after, '+', 'BYLEX', 'LIMIT', 0, limit)) do
  local agent, tenant = split(name)
  local ready, oldest = 0, math.huge
  agents[agent] = true
  for _, lane in ipairs({ agent, ${toLua(SUSPECTS)} .. agent, ${toLua(UNDO)} .. agent }) do
    local key = tag .. 'ready:' .. pair(lane, tenant)
    local count = redis.call('ZCARD', key)
    if count > 0 then ready, oldest = ready + count, math.min(oldest, oldest_in(key, count)) end
  end
  queues[i] = { agent, tenant, tostring(ready), string.format('%.0f', oldest) }
end
local running, paused, waiting = {}, {}, {}
if after == '-' then
  running = redis.call('HGETALL', tag .. 'running')
  paused = redis.call('SSCAN', tag .. 'paused', 0, 'COUNT', limit)[2]
  for i = 1, #running, 2 do
    if running[i + 1] ~= '0' then agents[running[i]] = true end
  end
end
agents['*'] = nil
for agent in pairs(agents) do
  local count = redis.call('ZCOUNT', tag .. 'waiters:' .. agent, now - ${LIMITS.parkedMs}, '+inf')
  if count > 0 then waiting[#waiting + 1], waiting[#waiting + 2] = agent, tostring(count) end
end
return { queues, paused, tostring(now), running, waiting }
`;

/** Keeps what a client found out, or tells one client that it is due. */
export const SHARE: string = /* lua */ `
if ARGV[6] ~= '' then redis.call('HSET', tag .. 'domain', 'shared', ARGV[6]) return { '0', false } end
local found = redis.call('HMGET', tag .. 'domain', 'sharedAt', 'shared')
local age = now - (found[1] or -math.huge)
local isDue = age >= tonumber(ARGV[5]) or age < 0
if isDue then redis.call('HSET', tag .. 'domain', 'sharedAt', now) end
return { isDue and '1' or '0', found[2] }
`;

export const CONVERSATIONS: string = /* lua */ `
local after = ARGV[6] == '' and '-' or '(' .. ARGV[6]
return redis.call('ZRANGE', tag .. 'conversations:' .. ARGV[5], after, '+', 'BYLEX', 'LIMIT', 0, ARGV[7])
`;

/** Stops or resumes the delivery of an agent's or a tenant's tasks. */
export const PAUSE: string = /* lua */ `
local kind, name, isPaused = unpack(ARGV, 5, 7)
redis.call(isPaused == '1' and 'SADD' or 'SREM', tag .. 'paused', kind .. ':' .. name)
if isPaused == '1' then return 'paused' end
if kind == 'tenant' then resume_tenant(name) else resume_agent(name) end
return 'resumed'
`;

/** Removes an ended task. */
export const REMOVE: string = /* lua */ `
local task = load(ARGV[5])
if not task or task.tenant ~= ARGV[6] then return 'unknown' end
if not task.endedAt then return 'live' end
forget(ARGV[5], true)
return 'removed'
`;

/** Removes an idle conversation. */
export const REMOVE_CONVERSATION: string = /* lua */ `
local name = pair(ARGV[5], ARGV[6])
local found = redis.call('HMGET', tag .. 'conversation:' .. name, 'changedAt', 'current', 'gathering')
if not found[1] then return { 'unknown' } end
if found[2] or found[3] then return { 'live' } end
forget_conversation(name, ARGV[5], ARGV[6])
return { 'removed' }
`;

import { toLua } from '../../../rules/literals.ts';
import { LIMITS } from '../../../rules/rules.ts';
import { STATUS_TABLE } from '../../../status.ts';

// Fast paths for most tasks. Everything else is handled by the pieces that follow.

/**
 * Creates a plain new task, as most are. It comes first in the script: defining the rest takes longer than
 * this takes to run.
 */
export const CREATE_PLAIN: string = /* lua */ `
if ARGV[11] == '' and ARGV[12] == '' and ARGV[13] == '' and ARGV[15] == '' and ARGV[19] == '' and ARGV[21] == '' and #ARGV[8] <= 64 then
  local id, tenant, agent, priority = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[14])
  local key, ready, lanes = tag .. 'task:' .. id, tag .. 'ready:' .. pair(agent, tenant), tag .. 'lanes:' .. agent
  local oldest = redis.call('ZRANGE', tag .. 'ended', 0, 0, 'WITHSCORES')
  local isClear = not oldest[1] or oldest[2] + retention > now
  local waiting = redis.call('ZCARD', ready)
  -- Nothing to remove, no task with that id, no worker to notify, and below the limit.
  if isClear and redis.call('EXISTS', key, tag .. 'waiters:' .. agent) == 0
    and waiting < tonumber(ARGV[10]) then
    local flat = {
      'tenant', tenant, 'agent', agent, 'status', 'init', 'createdAt', now, 'stage', 'ready', 'stageAt', now, 'input', ARGV[8],
    }
    if priority ~= 0 then flat[15], flat[16] = 'priority', priority end
    redis.call('HSET', key, unpack(flat))
    redis.call('ZADD', tag .. 'status:init:' .. tenant, now, id)
    redis.call('ZADD', tag .. 'tenants', 0, tenant)
    redis.call('ZADD', ready, (100 - priority) * 1e13 + now, id)
    if not redis.call('ZSCORE', lanes, tenant) then
      redis.call('ZADD', lanes, redis.call('HINCRBY', tag .. 'domain', 'tick', 1), tenant)
    end
    if waiting == 0 then redis.call('ZADD', tag .. 'queues', 0, pair(agent, tenant)) end
    redis.call('SPUBLISH', tag .. 'changes:' .. tenant, cjson.encode({ 'status', id, tenant, '', '' }))
    return { 'new', tostring(now), 'ready', tostring(now) }
  end
end
`;

/**
 * Ends a task that ran alone and got no orders, as most do. It comes first in the script: the rest takes longer to
 * define than this takes to run.
 */
export const FINISH_PLAIN: string = /* lua */ `
local key = tag .. 'task:' .. ARGV[5]
local found = redis.call('HMGET', key, 'status', 'epoch', 'session', 'claim', 'tenant', 'agent', 'worker', 'createdAt',
  'conversation', 'commandsSent', 'told')
local isOwn = found[1] == 'running' and found[2] == ARGV[6] and found[3] == ARGV[7] and found[4] == ARGV[8]
local isAlone = not found[9] and not found[10] and not found[11]
local status = (${toLua({ success: STATUS_TABLE.running.success, failed: STATUS_TABLE.running.failed })})[ARGV[9]]
if isOwn and isAlone and status and ARGV[10] == '' and ARGV[11] == '' and string.match(ARGV[4], '^%d+ %d+ 0 0 ') then
  local id, tenant = ARGV[5], found[5]
  local group = status .. ':' .. tenant
  local outcome = '{"status":"' .. status .. '"' .. (ARGV[12] == '{}' and '}' or ',' .. string.sub(ARGV[12], 2))
  if #outcome <= 64 then
    redis.call('HSET', key, 'status', status, 'endedAt', now, 'outcome', outcome)
  else
    redis.call('HSET', key, 'status', status, 'endedAt', now)
    redis.call('SET', tag .. 'outcome:' .. id, outcome)
  end
  redis.call('HDEL', tag .. 'held:' .. found[3], id)
  redis.call('HINCRBY', tag .. 'running', found[6], -1)
  redis.call('ZREM', tag .. 'status:running:' .. tenant, id)
  redis.call('ZADD', tag .. 'status:' .. group, found[8], id)
  redis.call('ZADD', tag .. 'ended:' .. group, now, id)
  redis.call('ZADD', tag .. 'ended', 'LT', now, group)
  redis.call('SPUBLISH', tag .. 'changes:' .. tenant, cjson.encode({ 'status', id, tenant, found[7], '' }))
  return { 'finished', status, false, { tenant, found[7], '' } }
end
`;

/** A part of a take. */
export const HOLD_PLAIN: string = /* lua */ `
-- Holds a task that got no orders and is no suspect, as most: its fields and the changes are returned unparsed.
local function hold_plain(one)
  local key, at = tag .. 'task:' .. one, {}
  local flat = redis.call('HGETALL', key)
  for i = 1, #flat, 2 do at[flat[i]] = flat[i + 1] end
  if at.status ~= 'init' or at.conversation or at.orderNumber or at.released or at.context or at.deadline or not at.input then return nil end
  local status, agent, epoch = CLAIMED[at.status], at.agent, (tonumber(at.epoch) or 0) + 1
  local attempts, startedAt = (tonumber(at.attempts) or 0) + 1, at.startedAt or now
  if attempts > ${LIMITS.suspectAttempts} then return nil end
  redis.call('HSET', key, 'status', status, 'stage', 'held', 'epoch', epoch, 'attempts', attempts, 'session', id,
    'claim', claim, 'worker', worker, 'startedAt', startedAt)
  redis.call('ZREM', tag .. 'status:' .. at.status .. ':' .. at.tenant, one)
  redis.call('ZADD', tag .. 'status:' .. status .. ':' .. at.tenant, at.createdAt, one)
  batch.held[#batch.held + 1], batch.held[#batch.held + 2] = one, epoch
  batch.agents[agent] = (batch.agents[agent] or 0) + 1
  redis.call('SPUBLISH', tag .. 'changes:' .. at.tenant, cjson.encode({ 'status', one, at.tenant, worker, '' }))
  local changes = { 'id', one, 'status', status, 'stage', 'held', 'epoch', epoch, 'attempts', attempts, 'session', id,
    'claim', claim, 'worker', worker, 'startedAt', startedAt }
  for i = 1, #changes do flat[#flat + 1] = changes[i] end
  local load = false
  if #at.input <= bytesLeft then
    load = { { at.input }, {} }
    bytesLeft = bytesLeft - #at.input
  end
  return { { flat, false, {} }, { tostring(now), '0', false, {}, '0' }, load }
end
`;

/**
 * The first cancel of a task that a worker holds, as nearly every cancel is. Only `tell` comes before it in the script.
 */
export const CANCEL_PLAIN: string = /* lua */ `
local key = tag .. 'task:' .. ARGV[5]
local found = redis.call('HMGET', key, 'tenant', 'status', 'stage', 'stopLevel', 'worker', 'conversation', 'epoch', 'claim',
  'orderNumber', 'createdAt', 'session', 'told')
if found[1] == ARGV[6] and found[2] == 'running' and found[3] == 'held' and not found[4] then
  local level, abortAt, killAt, reason = ARGV[7], now + ARGV[8], now + ARGV[9], ARGV[11]
  -- A reason without a time gets the store's time.
  if ARGV[12] == '0' then reason = string.sub(reason, 1, -2) .. ',"at":' .. now .. '}' end
  local task = {
    id = ARGV[5], tenant = found[1], status = ${toLua(STATUS_TABLE.running.cancel)}, worker = found[5] or nil,
    conversation = found[6] or nil, epoch = found[7] or 0, claim = found[8] or nil, orderNumber = (found[9] or 0) + 1,
    stopLevel = level, abortAt = abortAt, killAt = killAt, undo = ARGV[10], stopReason = reason,
  }
  redis.call('HSET', key, 'status', task.status, 'stopLevel', level, 'abortAt', abortAt, 'killAt', killAt, 'undo', task.undo,
    'stopReason', reason, 'orderNumber', task.orderNumber, 'told', '1')
  redis.call('ZREM', tag .. 'status:running:' .. task.tenant, task.id)
  redis.call('ZADD', tag .. 'status:' .. task.status .. ':' .. task.tenant, found[10], task.id)
  if not found[12] then redis.call('ZADD', tag .. 'told:' .. found[11], now, task.id) end
  tell('cancel', task)
  if now >= killAt then level = 'kill' elseif now >= abortAt and level == 'drain' then level = 'abort' end
  return { 'accepted', task.status, level, reason, tostring(killAt) }
end
`;

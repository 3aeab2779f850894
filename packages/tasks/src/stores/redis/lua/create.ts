import { BACKGROUND } from '../../../rules/background.ts';
import { toLua } from '../../../rules/literals.ts';
import { LIMITS, SIZES } from '../../../rules/rules.ts';
import { STATUS_TABLE } from '../../../status.ts';

/** The keys of one task beside the indexes. */
const KINDS = ['task:', 'outcome:', 'journal:', 'commands:', 'sent:', 'title:', 'context:'];

/**
 * Removes records past their retention. Ended tasks are in one sorted set for each status and tenant, by the time of their
 * end; `ended` has the names of these sets, by the end of their first task or earlier.
 */
export const FORGET: string = /* lua */ `
-- Returns the conversation that a background task belongs to.
local function background_of(key)
  return string.match(key, '^${BACKGROUND}(.*)/[^/]*$')
end

-- isAsked: before its retention ends.
local function forget(id, isAsked)
  local found = redis.call('HMGET', tag .. 'task:' .. id, 'status', 'tenant', 'conversation', 'inputsOf', 'endedAt', 'key')
  if not found[5] or (found[5] + retention > now and not isAsked) then return end
  local keys = { tag .. 'inputs:' .. (found[4] or id) }
  for _, kind in ipairs({ ${KINDS.map((kind) => `'${kind}'`).join(', ')} }) do keys[#keys + 1] = tag .. kind .. id end
  redis.call('UNLINK', unpack(keys))
  for _, index in ipairs({ 'status:', 'ended:' }) do redis.call('ZREM', tag .. index .. found[1] .. ':' .. found[2], id) end
  local left = {}
  for i, status in ipairs(${toLua(Object.keys(STATUS_TABLE))}) do left[i] = tag .. 'status:' .. status .. ':' .. found[2] end
  if redis.call('EXISTS', unpack(left)) == 0 then redis.call('ZREM', tag .. 'tenants', found[2]) end
  if found[3] then redis.call('ZREM', tag .. 'said:' .. pair(found[2], found[3]), id) end
  local background = not found[3] and background_of(found[6] or '')
  if background then redis.call('ZREM', tag .. 'background:' .. pair(found[2], background), id) end
end

-- Returns whether there are more.
local function forget_some(limit)
  while true do
    local first = redis.call('ZRANGE', tag .. 'ended', 0, 0, 'WITHSCORES')
    if not first[1] or first[2] + retention > now then return false end
    if limit <= 0 then return true end
    local key = tag .. 'ended:' .. first[1]
    local ids = redis.call('ZRANGEBYSCORE', key, '-inf', now - retention, 'LIMIT', 0, limit)
    for _, id in ipairs(ids) do forget(id) end
    if #ids > 0 then redis.call('ZREM', key, unpack(ids)) end
    limit = limit - math.max(1, #ids)
    local following = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if following[1] then
      redis.call('ZADD', tag .. 'ended', following[2], first[1])
    else
      redis.call('ZREM', tag .. 'ended', first[1])
    end
  end
end

local function forget_conversation(name, tenant, conversation)
  redis.call('UNLINK', tag .. 'conversation:' .. name, tag .. 'history:' .. name)
  redis.call('ZREM', tag .. 'conversations:' .. tenant, conversation)
end

-- Returns whether there are more.
local function forget_conversations(limit)
  local idle = redis.call('ZRANGEBYSCORE', tag .. 'idle', '-inf', now - conversationRetention, 'LIMIT', 0, limit)
  for _, name in ipairs(idle) do
    redis.call('ZREM', tag .. 'idle', name)
    local found = redis.call('HMGET', tag .. 'conversation:' .. name, 'changedAt', 'current', 'gathering')
    local isIdle = found[1] and not found[2] and not found[3] and found[1] + conversationRetention <= now
    if isIdle then forget_conversation(name, split(name)) end
  end
  return #idle == limit
end
`;

/** Returns whether a task or conversation of an earlier shard count is still in use in this shard. */
export const HERE: string = /* lua */ `
local function is_here(id, tenant, conversation)
  local task = redis.call('HMGET', tag .. 'task:' .. id, 'createdAt', 'endedAt')
  if task[1] and not (task[2] and task[2] + retention <= now) then return true end
  local found = redis.call('HMGET', tag .. 'conversation:' .. pair(tenant, conversation), 'changedAt', 'current', 'gathering')
  return found[1] and (found[2] or found[3] or found[1] + conversationRetention > now)
end
`;

export const IS_HERE: string = /* lua */ `
return is_here(unpack(ARGV, 5, 7)) and 'here' or 'gone'
`;

/** Creates a task and admits it to its conversation, if it has one. */
export const CREATE: string = /* lua */ `
-- Returns the receipt for the creator of a task.
local function receipt(task)
  local superseded = {}
  for id in string.gmatch(task.superseded or '', '%S+') do superseded[#superseded + 1] = id end
  return { 'created', record(task), superseded, task.steered or false }
end

local id, tenant, agent, input, nonce, maxReady = unpack(ARGV, 5, 10)
local conversation, key, worker, priority, notBefore, policy, holdMs = unpack(ARGV, 11, 17)
forget_some(${LIMITS.maxForgotten})
if conversation ~= '' then forget_conversations(${LIMITS.maxForgotten}) end
local existing = load(id)
if existing then
  -- Without a key the id is derived from the nonce, so it is the same request.
  if existing.key and existing.nonce ~= nonce then return { 'duplicate', record(existing) } end
  return receipt(existing)
end
-- A name that is no longer in use here starts in its new shard.
if ARGV[18] == '1' and not is_here(id, tenant, conversation) then return { 'gone' } end
if redis.call('ZCARD', ready_key(agent, tenant)) >= tonumber(maxReady) then return { 'full', 'tasks', maxReady } end
if redis.call('EXISTS', tag .. 'task:' .. id) == 1 then forget(id) end
local task = new_task(id)
put(task, 'tenant', tenant)
put(task, 'agent', agent)
put(task, 'status', 'init')
put(task, 'createdAt', now)
if conversation ~= '' then put(task, 'conversation', conversation) end
if key ~= '' then
  put(task, 'key', key)
  put(task, 'nonce', nonce)
end
if worker ~= '' then put(task, 'worker', worker) end
if priority ~= '0' then put(task, 'priority', tonumber(priority)) end
if notBefore ~= '' then put(task, 'notBefore', tonumber(notBefore)) end
if ARGV[19] ~= '' then put(task, 'deadline', tonumber(ARGV[19])) end

local context = ARGV[21]

local function keep_input()
  if context ~= '' then
    put(task, 'context', '1')
    redis.call('SET', tag .. 'context:' .. id, context)
  end
  -- A small input is kept with the task, and readers know its title. A long title has a separate key.
  if #input <= 64 and not task.inputsOf and tonumber(holdMs) == 0 and policy ~= 'merge' then
    put(task, 'input', input)
    return
  end
  redis.call('RPUSH', tag .. 'inputs:' .. (task.inputsOf or id), input)
  local title = ARGV[20]
  if title == '' then return end
  if #title <= 64 then
    put(task, 'title', title)
  else
    put(task, 'title', '')
    redis.call('SET', tag .. 'title:' .. id, title)
  end
end

if conversation == '' then
  keep_input()
  come_next(task)
  tell('status', task)
  local background = background_of(key)
  if background then redis.call('ZADD', tag .. 'background:' .. pair(tenant, background), now, id) end
  -- The caller knows the rest.
  return { 'new', tostring(now), task.stage, tostring(task.stageAt) }
end

local line = conversation_of(task)
if line.historyBytes > ${SIZES.historyBytes} then return { 'full', 'history', '${SIZES.historyBytes}' } end
-- Check this before joining: a rejected message must not take the accepted ones that are held back with it.
if policy == 'reject' and tonumber(holdMs) == 0 and line.current then return { 'rejected' } end
local held = line.gathering and load(line.gathering)
if held and context_of(held) ~= context then
  -- Messages of different contexts are never merged: those that are held back come first.
  admit_gathered(held)
  held = nil
end
if held then
  local owner = held.inputsOf or held.id
  if redis.call('LLEN', tag .. 'inputs:' .. owner) >= ${LIMITS.maxGathered} then
    return { 'full', 'tasks', '${LIMITS.maxGathered}' }
  end
end
if tonumber(holdMs) == 0 and policy ~= 'replace' and #line.waiting >= ${LIMITS.maxQueued} then
  return { 'full', 'queue', '${LIMITS.maxQueued}' }
end
if held then
  end_merged(held, task)
  line.gathering = nil
  save_conversation(line)
end
keep_input()
if tonumber(holdMs) > 0 then
  put(task, 'policy', policy)
  put_off(task, now + tonumber(holdMs))
  line.gathering = id
  save_conversation(line)
  tell('status', task)
elseif not admit(task, policy) then
  redis.call('DEL', tag .. 'title:' .. id, tag .. 'context:' .. id)
  if not held then redis.call('DEL', tag .. 'inputs:' .. id) end
  return { 'rejected' }
end
redis.call('ZADD', tag .. 'said:' .. line.name, now, id)
return receipt(task)
`;

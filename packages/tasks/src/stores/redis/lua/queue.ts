import { toLua } from '../../../rules/literals.ts';
import { ADMISSION_TABLE, GRACEFUL, LEVEL_RANKS, LIMITS } from '../../../rules/rules.ts';
import { toLostMessage } from '../../../rules/suspects.ts';
import { columnOf } from './task.ts';

/** Stopping: levels only rise, deadlines only move closer, the first reason is kept. */
export const STOP: string = /* lua */ `
local RANKS = ${toLua(LEVEL_RANKS)}
local CANCELLED = ${columnOf('cancel')}

local function higher(a, b)
  if b and RANKS[b] > RANKS[a] then return b end
  return a
end

-- Returns the current level of a stop, which rises as its deadlines pass.
local function level_now(task)
  local climbed = task.stopLevel
  if now >= task.killAt then climbed = 'kill' elseif now >= task.abortAt then climbed = 'abort' end
  return higher(climbed, task.stopLevel)
end

-- Returns whether a task may have had effects. Then it must be settled, not just ended.
local function has_begun(task)
  return task.status ~= 'init' or task.position > 0
end

-- Orders the worker of a task to stop; if no worker holds it, a free worker settles it.
local function order_stop(task, asked)
  local abortAt, killAt = now + asked.abortMs, now + asked.killMs
  local level, undo, answer = asked.level, asked.undo, 'accepted'
  if task.stopLevel then
    local reached = level_now(task)
    local isStronger = RANKS[level] > RANKS[reached] or abortAt < task.abortAt or killAt < task.killAt
      or (undo and task.undo ~= '1')
    if not isStronger then return 'already' end
    answer = 'escalated'
    level, undo = higher(level, reached), undo or task.undo == '1'
    abortAt, killAt = math.min(abortAt, task.abortAt), math.min(killAt, task.killAt)
  end
  -- A started task must be settled, not just ended, even if no worker holds it at the moment.
  put(task, 'status', CANCELLED[task.status == 'init' and 'running' or task.status])
  put(task, 'stopLevel', level)
  put(task, 'abortAt', abortAt)
  put(task, 'killAt', killAt)
  put(task, 'undo', undo and '1' or '0')
  if not task.stopReason then put(task, 'stopReason', asked.reason) end
  if task.stage == 'held' then
    give_order(task, 'cancel')
  else
    put(task, 'orderNumber', task.orderNumber + 1)
    if task.worker then put(task, 'worker', nil) end
    tell('cancel', task)
    make_ready(task)
  end
  return answer
end
`;

/** Conversations: one task is current, the others wait. */
export const QUEUE: string = /* lua */ `
local conversations = {}

local function conversation_named(tenant, conversation)
  local name = pair(tenant, conversation)
  local known = conversations[name]
  if known then return known end
  local key = tag .. 'conversation:' .. name
  local found = redis.call('HMGET', key, 'current', 'gathering', 'historyBytes', 'changedAt')
  if found[4] and not found[1] and not found[2] and found[4] + conversationRetention <= now then
    redis.call('DEL', key, tag .. 'history:' .. name)
    found = {}
  end
  known = {
    name = name, isNew = not found[3], current = found[1] or nil, gathering = found[2] or nil, historyBytes = tonumber(found[3] or 0),
    waiting = redis.call('LRANGE', tag .. 'waiting:' .. name, 0, -1),
  }
  conversations[name] = known
  return known
end

local function conversation_of(task)
  if not task.conversation then return nil end
  return conversation_named(task.tenant, task.conversation)
end

local function save_conversation(conversation, waiting)
  local name = conversation.name
  local key = tag .. 'conversation:' .. name
  local flat, gone = { 'changedAt', now, 'historyBytes', conversation.historyBytes }, {}
  for _, field in ipairs({ 'current', 'gathering' }) do
    if conversation[field] then
      flat[#flat + 1], flat[#flat + 2] = field, conversation[field]
    else
      gone[#gone + 1] = field
    end
  end
  if waiting then
    conversation.waiting = waiting
    redis.call('DEL', tag .. 'waiting:' .. name)
    if #waiting > 0 then redis.call('RPUSH', tag .. 'waiting:' .. name, unpack(waiting)) end
  end
  if conversation.isNew then
    local tenant, own = split(name)
    redis.call('ZADD', tag .. 'conversations:' .. tenant, 0, own)
    conversation.isNew = nil
  end
  -- Only idle conversations are removed.
  if not conversation.current and not conversation.gathering then redis.call('ZADD', tag .. 'idle', now, name) end
  redis.call('HSET', key, unpack(flat))
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
end

local function without(ids, id)
  local rest = {}
  for _, other in ipairs(ids) do if other ~= id then rest[#rest + 1] = other end end
  return rest
end

-- Removes an ended task from its conversation. Returns the next task, if that changed.
local function leave_conversation(task)
  local conversation = conversation_of(task)
  if not conversation then return nil end
  if conversation.gathering == task.id then conversation.gathering = nil end
  local waiting = without(conversation.waiting, task.id)
  if conversation.current ~= task.id then
    save_conversation(conversation, #waiting < #conversation.waiting and waiting or nil)
    return nil
  end
  conversation.current = table.remove(waiting, 1)
  save_conversation(conversation, #conversation.waiting > 0 and waiting or nil)
  local successor = conversation.current and load(conversation.current)
  if not successor then return nil end
  come_next(successor)
  return successor.id
end
`;

/** Ends a task whose workers kept crashing. */
export const FAIL_LOST: string = /* lua */ `
local function fail_lost(task)
  local message = '${toLostMessage("' .. task.deaths .. '")}'
  end_task(task, 'failed', '{"status":"failed","error":{"message":"' .. message .. '","code":"WORKERS_LOST"}}')
  leave_conversation(task)
end
`;

/** Admits a task to its conversation: it is next, waits, is passed to the current task as a message, or is rejected. */
export const ADMIT: string = /* lua */ `
-- Passes the message to the current task; returns which waiting tasks are such messages.
local function steer(current, task)
  local key, earlier = tag .. 'commands:' .. current.id, {}
  if current.commandsSent > 0 then
    for _, command in ipairs(redis.call('HVALS', key)) do
      local steered = string.match(command, '^([^\\n]*)\\n')
      if steered ~= '' then earlier[steered] = true end
    end
  end
  local inputs = inputs_of(task)
  local number = current.commandsSent + 1
  local command = '{"type":"steer","message":' .. inputs[#inputs] .. ',"task":"' .. task.id .. '"}'
  redis.call('HSET', key, number, task.id .. '\\n' .. command)
  put(current, 'commandsSent', number)
  give_order(current, 'command')
  return earlier
end

local function enqueue(task, conversation, waiting)
  put(task, 'stage', 'queue')
  put(task, 'stageAt', nil)
  put(task, 'policy', nil)
  save(task)
  save_conversation(conversation, waiting)
  tell('status', task)
end

local function replace(task, conversation, current)
  local reason, superseded = reason_of('superseded', 'a newer message arrived'), {}
  for _, id in ipairs(conversation.waiting) do
    end_unstarted(load(id), reason)
    superseded[#superseded + 1] = id
  end
  superseded[#superseded + 1] = current.id
  put(task, 'superseded', table.concat(superseded, ' '))
  if has_begun(current) then
    order_stop(current, {
      level = ${toLua(GRACEFUL.level)}, abortMs = ${GRACEFUL.abortMs}, killMs = ${GRACEFUL.killMs}, undo = false, reason = reason,
    })
    enqueue(task, conversation, { task.id })
    return
  end
  end_unstarted(current, reason)
  conversation.current = task.id
  save_conversation(conversation, #conversation.waiting > 0 and {} or nil)
  come_next(task)
  tell('status', task)
end

-- Ends a task whose messages a newer one takes over. They are passed on, not copied.
local function end_merged(task, newer)
  local owner = task.inputsOf or task.id
  if task.input then redis.call('RPUSH', tag .. 'inputs:' .. owner, task.input) end
  put(newer, 'inputsOf', owner)
  put(task, 'inputsOf', '')
  end_unstarted(task, reason_of('merged', 'taken over by ' .. newer.id))
end

-- Merges a task with the last one that waits. Returns whether that was possible.
local function merge(task, conversation)
  local waiting = without(conversation.waiting, '')
  local last = waiting[1] and load(waiting[#waiting])
  -- A message that was passed to the current task may be read there.
  if not last or last.steered or last.agent ~= task.agent or context_of(last) ~= context_of(task) then return false end
  local inputs, own = inputs_of(task), task.inputsOf or task.id
  local count = last.input and 1 or redis.call('LLEN', tag .. 'inputs:' .. (last.inputsOf or last.id))
  if count + #inputs > ${LIMITS.maxGathered} then return false end
  end_merged(last, task)
  for _, input in ipairs(inputs) do redis.call('RPUSH', tag .. 'inputs:' .. task.inputsOf, input) end
  redis.call('DEL', tag .. 'inputs:' .. own)
  waiting[#waiting] = task.id
  enqueue(task, conversation, waiting)
  return true
end

-- Returns whether the task was admitted; if not, nothing was written.
local function admit(task, policy)
  local conversation = conversation_of(task)
  local current = conversation.current and load(conversation.current)
  local admission = (${toLua(ADMISSION_TABLE)})[policy][current and current.status or 'none']
  if admission == 'start' then
    conversation.current = task.id
    save_conversation(conversation)
    come_next(task)
    tell('status', task)
    return true
  end
  if admission == 'replace' then
    replace(task, conversation, current)
    return true
  end
  local waiting = conversation.waiting
  if admission == 'reject' or #waiting >= ${LIMITS.maxQueued} then return false end
  if admission == 'merge' and merge(task, conversation) then return true end
  local isSteered = admission == 'steer' and context_of(current) == context_of(task)
    and (current.commandsSent == 0 or redis.call('HLEN', tag .. 'commands:' .. current.id) < ${LIMITS.maxCommands})
  if not isSteered then
    local all = without(waiting, '')
    all[#all + 1] = task.id
    enqueue(task, conversation, all)
    return true
  end
  local earlier, ahead, behind = steer(current, task), {}, {}
  for _, id in ipairs(waiting) do
    if earlier[id] then ahead[#ahead + 1] = id else behind[#behind + 1] = id end
  end
  ahead[#ahead + 1] = task.id
  for _, id in ipairs(behind) do ahead[#ahead + 1] = id end
  put(task, 'steered', current.id)
  enqueue(task, conversation, ahead)
  return true
end

-- Applies the policy when the time to wait for more messages is over.
local function admit_gathered(task)
  local conversation, policy = conversation_of(task), task.policy
  conversation.gathering = nil
  save_conversation(conversation)
  if admit(task, policy) then return end
  end_unstarted(task, reason_of('rejected', 'another task of the conversation was under way'))
end
`;

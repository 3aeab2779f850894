import { LIMITS } from '../../../rules/rules.ts';

/** Asks a task to stop. A task that never started ends at once. */
export const CANCEL_ONE: string = /* lua */ `
-- A reason without a time gets the store's time.
local function asked_by(level, abortMs, killMs, undo, reason, dated)
  if dated == '0' then reason = string.sub(reason, 1, -2) .. ',"at":' .. now .. '}' end
  return { level = level, abortMs = tonumber(abortMs), killMs = tonumber(killMs), undo = undo == '1', reason = reason }
end

-- Withdraws a message that the current task has not read yet.
local function take_back(task)
  local key = tag .. 'commands:' .. task.steered
  local commands = redis.call('HGETALL', key)
  for i = 1, #commands, 2 do
    if string.match(commands[i + 1], '^([^\\n]*)\\n') == task.id then
      redis.call('HDEL', key, commands[i])
      give_order(load(task.steered), 'command')
    end
  end
end

local function cancel_task(task, asked)
  if task.endedAt then return { 'too-late', task.status } end
  if not has_begun(task) then
    if task.steered then take_back(task) end
    end_unstarted(task, asked.reason)
    leave_conversation(task)
    return { 'accepted', 'cancelled', 'drain', asked.reason, tostring(now) }
  end
  local answer = order_stop(task, asked)
  return { answer, 'cancelling', level_now(task), task.stopReason, tostring(task.killAt) }
end
`;

export const CANCEL: string = /* lua */ `
${CANCEL_ONE}
local task = load(ARGV[5])
if not task or task.tenant ~= ARGV[6] then return { 'unknown' } end
return cancel_task(task, asked_by(unpack(ARGV, 7)))
`;

/** Asks the current task of a conversation to stop, and ends all waiting tasks. */
export const CANCEL_CONVERSATION: string = /* lua */ `
${CANCEL_ONE}
local conversation = conversation_named(ARGV[5], ARGV[6])
local asked = asked_by(unpack(ARGV, 7))
local ids, receipt = {}, { 'unknown' }
if conversation.gathering then ids[1] = conversation.gathering end
for _, id in ipairs(conversation.waiting) do ids[#ids + 1] = id end
-- The current task last: while it is live, no other task can start.
if conversation.current then ids[#ids + 1] = conversation.current end
for _, id in ipairs(ids) do
  local task = load(id)
  if task then receipt = cancel_task(task, asked) end
end
return receipt
`;

/** Sends a command to the worker of a task. */
export const SEND: string = /* lua */ `
local nonce, command = ARGV[7], ARGV[8]
local task = load(ARGV[5])
if not task or task.tenant ~= ARGV[6] then return { 'unknown' } end
local key, sent = tag .. 'commands:' .. task.id, tag .. 'sent:' .. task.id
-- Check this first: the command may have been carried out since, and the task may have ended.
local known = redis.call('ZSCORE', sent, nonce)
if known then return { 'accepted', known } end
if task.status ~= 'init' and task.status ~= 'running' then return { 'too-late', task.status } end
if redis.call('HLEN', key) >= ${LIMITS.maxCommands} then return { 'full' } end
local number = task.commandsSent + 1
redis.call('HSET', key, number, '\\n' .. command)
redis.call('ZADD', sent, number, nonce)
redis.call('ZREMRANGEBYSCORE', sent, '-inf', number - ${LIMITS.maxNonces})
put(task, 'commandsSent', number)
give_order(task, 'command')
return { 'accepted', tostring(number) }
`;

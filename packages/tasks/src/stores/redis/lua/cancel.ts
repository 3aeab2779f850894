/**
 * The first cancel of a running task, which nearly every cancel is. It needs little, and stands before everything else:
 * a server that was idle takes longer to define the rest than to do this.
 */
export const CANCEL_RUNNING: string = /* lua */ `
local key = tag .. 'task:' .. ARGV[5]
local found = redis.call('HMGET', key, 'status', 'tenant', 'epoch', 'worker', 'conversation', 'createdAt', 'seal')
if found[1] == 'running' and found[2] == ARGV[6] then
  local now, level, reason = clock(), ARGV[7], ARGV[11]
  if ARGV[12] == '0' then reason = string.sub(reason, 1, -2) .. ',"at":' .. now .. '}' end
  local task = {
    id = ARGV[5], tenant = ARGV[6], epoch = found[3], worker = found[4], conversation = found[5], seal = found[7],
    stopLevel = level, stopReason = reason, abortAt = now + ARGV[8], killAt = now + ARGV[9], undo = ARGV[10],
  }
  redis.call('HSET', key, 'status', 'cancelling', 'stopLevel', level, 'stopReason', reason, 'abortAt', task.abortAt,
    'killAt', task.killAt, 'undo', task.undo)
  redis.call('ZREM', tag .. 'status:running:' .. task.tenant, task.id)
  redis.call('ZADD', tag .. 'status:cancelling:' .. task.tenant, found[6], task.id)
  tell('cancel', task)
  -- A step of the ladder that lasts no time has been climbed.
  if task.killAt == now then level = 'kill' elseif task.abortAt == now and level == 'drain' then level = 'abort' end
  return { 'accepted', 'cancelling', level, reason, tostring(task.killAt) }
end
`;

/** Asks a task to stop. One that never started has ended with the answer. */
const CANCEL_ONE = /* lua */ `
-- The store's clock dates a reason that its sender did not.
local function asked_by(level, abortMs, killMs, undo, reason, dated)
  if dated == '0' then reason = string.sub(reason, 1, -2) .. ',"at":' .. now .. '}' end
  return { level = level, abortMs = tonumber(abortMs), killMs = tonumber(killMs), undo = undo == '1', reason = reason }
end

local function cancel_task(task, asked)
  if FINAL[task.status] then return { 'too-late', task.status } end
  if task.status == 'init' then
    end_unstarted(task, asked.reason)
    leave_line(task)
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

/** Asks the current task of a conversation to stop, and ends everything that waits. */
export const CANCEL_LINE: string = /* lua */ `
${CANCEL_ONE}
local line = load_line(ARGV[5], ARGV[6])
local asked = asked_by(unpack(ARGV, 7))
local ids, receipt = {}, { 'unknown' }
if line.gathering then ids[1] = line.gathering end
for _, id in ipairs(line.waiting) do ids[#ids + 1] = id end
-- The current one last: as long as it lives, nobody's turn comes.
if line.current then ids[#ids + 1] = line.current end
for _, id in ipairs(ids) do
  local task = load(id)
  if task then receipt = cancel_task(task, asked) end
end
return receipt
`;

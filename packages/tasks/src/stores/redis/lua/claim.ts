/** Takes a task that is nobody's. */
export const CLAIM: string = /* lua */ `
-- The time to wait for more messages is over: the task does what its policy says.
local function admit_held(task)
  local line = line_of(task)
  line.gathering = nil
  save_line(line)
  if not admit(task, task.heldPolicy) then
    end_unstarted(task, reason_of('rejected', 'another task of the conversation was under way'))
  end
end

-- Its workers keep dying: the task is to blame, or nobody can tell. The epoch moves on, so the last one is fenced too.
local function give_up(task)
  set(task, { epoch = task.epoch + 1 })
  local message = 'its workers were lost ' .. attemptsMax .. ' times'
  conclude(task, 'failed', '{"status":"failed","error":{"message":"' .. message .. '","code":"WORKERS_LOST"}}')
  tell('status', task)
  leave_line(task)
  return { 'too-late', 'failed' }
end

local id, worker, leaseMs = ARGV[5], ARGV[6], tonumber(ARGV[7])
local task = load(id)
if not task then return { 'unknown' } end
if task.heldUntil then
  if now < task.heldUntil then return { 'waiting', tostring(task.heldUntil) } end
  admit_held(task)
end
if FINAL[task.status] then return { 'too-late', task.status } end
if task.waiting then return { 'waiting' } end
if task.leaseUntil and now < task.leaseUntil then return { 'held', tostring(task.leaseUntil) } end
if task.status == 'running' and task.attempts >= attemptsMax then return give_up(task) end
local status = task.status == 'init' and 'running' or task.status
reindex(task, status)
set(task, {
  status = status, dueAt = now + leaseMs, epoch = task.epoch + 1, attempts = task.attempts + 1, worker = worker, seal = ARGV[8],
  leaseUntil = now + leaseMs, startedAt = task.startedAt or now,
})
redis.call('ZADD', tag .. 'due', task.dueAt, id)
tell('status', task)
local line = line_of(task)
local history = line and redis.call('LRANGE', tag .. 'history:' .. line.name, 0, -1)
return { 'claimed', record(task), orders(task), history or {} }
`;

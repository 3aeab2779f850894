import { COMMANDS_MAX, NONCES_MAX } from '../../../store.ts';

/** Leaves the worker of a task something to do. */
export const SEND: string = /* lua */ `
local nonce, command = ARGV[7], ARGV[8]
local task = load(ARGV[5])
if not task or task.tenant ~= ARGV[6] then return { 'unknown' } end
-- Ask this first: it may have been carried out since, and the task may have ended.
local sent = redis.call('ZSCORE', tag .. 'sent:' .. task.id, nonce)
if sent then return { 'accepted', sent } end
if task.status ~= 'init' and task.status ~= 'running' then return { 'too-late', task.status } end
local key = tag .. 'commands:' .. task.id
if redis.call('HLEN', key) >= ${COMMANDS_MAX} then return { 'full' } end
local number = task.commandsSent + 1
redis.call('HSET', key, number, '\\n' .. command)
redis.call('ZADD', tag .. 'sent:' .. task.id, number, nonce)
redis.call('ZREMRANGEBYSCORE', tag .. 'sent:' .. task.id, '-inf', number - ${NONCES_MAX})
set(task, { commandsSent = number })
tell('command', task)
return { 'accepted', tostring(number) }
`;

import { FORMAT } from '../../../rules/format.ts';
import { toLua } from '../../../rules/literals.ts';
import type { StoredSetting } from '../../driver.ts';

/** The settings that the store holds. */
export const STORED: readonly StoredSetting[] = ['retentionMs', 'conversationRetentionMs'];

/** How the shards are laid out; kept beside the first of them. */
export const LAYOUT: string = /* lua */ `
-- The routing key must never exist: only then does a server that gives the shard away refuse all scripts.
if redis.call('EXISTS', tag) == 1 then return { 'anchor', '' } end
local layout = redis.call('HMGET', tag .. 'layout', 'format', 'shards', ${STORED.map((name) => `'${name}'`).join(', ')})
for i = 1, ${2 + STORED.length} do layout[i] = layout[i] or '' end
return layout
`;

/** Writes the layout, unless another client already has. */
export const LAY_OUT: string = /* lua */ `
redis.call('HSETNX', tag .. 'layout', 'format', ARGV[2])
redis.call('HSETNX', tag .. 'layout', 'shards', ARGV[3])
for i, name in ipairs(${toLua(STORED)}) do
  if ARGV[3 + i] ~= '' then redis.call('HSET', tag .. 'layout', name, ARGV[3 + i]) end
end
`;

/** Returns the format of a shard. */
export const READ_FORMAT: string = /* lua */ `return format`;

/** Writes the newest format to a shard. */
export const WRITE_FORMAT: string = /* lua */ `redis.call('HSET', tag .. 'layout', 'format', ${FORMAT})`;

/** How the shards are laid out; kept beside the first of them. */
export const LAYOUT: string = /* lua */ `
-- The routing key must never exist: only then does a server that gives the shard away refuse all scripts.
if redis.call('EXISTS', tag) == 1 then return { 'anchor', '' } end
local layout = redis.call('HMGET', tag .. 'layout', 'format', 'shards')
return { layout[1] or '', layout[2] or '' }
`;

/** Writes the layout, unless another client already has. */
export const LAY_OUT: string = /* lua */ `
redis.call('HSETNX', tag .. 'layout', 'format', ARGV[2])
redis.call('HSETNX', tag .. 'layout', 'shards', ARGV[3])
`;

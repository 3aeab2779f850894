// One process of cancel-bus without a store: changes a row and publishes, or reports when it hears.
import { Redis } from 'ioredis';
import pg from 'pg';

const [url = '', redisUrl = '', part = 'work'] = process.argv.slice(2);
const redis = new Redis(redisUrl);
const at = (): string => `${process.hrtime.bigint()}`;

if (part === 'work') {
  redis.on('message', () => process.send?.({ type: 'fired', at: at() }));
  await redis.subscribe('bare');
} else {
  const database = new pg.Client(url);
  await database.connect();
  await database.query(`CREATE TABLE bare AS SELECT 1 AS key, 'running'::text AS status, 0 AS at`);
  const text = `UPDATE bare SET status = 'cancelling', at = at + 1 WHERE key = 1`;
  const stop = async (): Promise<void> => {
    process.send?.({ type: 'asked', at: at() });
    await database.query({ name: 'stop', text });
    await redis.publish('bare', 'x');
  };
  process.on('message', () => {
    stop().catch((error: unknown) => process.emitWarning(error as Error));
  });
}
process.send?.({ type: 'ready' });

// A worker process: node worker.ts bullmq|whoa URL FOLDER
import { startBullmqWorker } from './bullmq.ts';
import { startWhoaWorker } from './whoa.ts';

const [kind, url, folder] = process.argv.slice(2) as [string, string, string];
await (kind === 'whoa' ? startWhoaWorker : startBullmqWorker)(url, folder);
process.send?.('ready');

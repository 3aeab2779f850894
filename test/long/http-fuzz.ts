// 100,000 valid and invalid requests generated from the OpenAPI document of the task API: npm run long -- http-fuzz [seed].
import { createMemoryStore } from '@whoa/tasks';
import { fuzzTaskApi } from '../campaigns/http-fuzz.ts';

const REQUESTS = 100_000;
const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const started = performance.now();
const store = createMemoryStore();
console.log(`seed ${seed}`);
const counts = await fuzzTaskApi({ store, requests: REQUESTS, seed });
await store[Symbol.asyncDispose]();
const seconds = Math.round((performance.now() - started) / 1_000);
console.log(JSON.stringify({ seed, seconds, requests: REQUESTS, counts }, undefined, 2));

// Runs the cut-off journeys against real vendors and writes redacted recordings, which CI replays: npm run live.
// Only vendors whose key is set are called (OPENAI_API_KEY, ANTHROPIC_API_KEY). A journey sends at most 4 requests of at most
// 2,000 tokens of output. `--loopback` uses our own provider instead, and marks the recordings accordingly.
import { parseArgs } from 'node:util';
import { LIMITS, record, selectJourneys, VENDORS, writeRecording } from '../test/live/vendors.ts';

const { values } = parseArgs({ options: { loopback: { type: 'boolean', default: false } } });
const asked = VENDORS.map((vendor) => ({ vendor, key: process.env[vendor.keyVariable] })).filter(
  ({ key }) => values.loopback || key !== undefined,
);
if (asked.length === 0) {
  const variables = [...new Set(VENDORS.map(({ keyVariable }) => keyVariable))].join(' or ');
  console.error(`live: set ${variables} to ask a vendor, or pass --loopback`);
  process.exit(2);
}
for (const { vendor, key } of asked) {
  const journeys = selectJourneys(vendor.format);
  const most = `at most ${journeys.length * LIMITS.maxRequests} requests of ${LIMITS.maxOutputTokens} tokens`;
  console.log(`${vendor.name}: ${journeys.length} journeys, ${most}`);
  for (const journey of journeys) {
    const { problems, recording } = await record(vendor, journey, values.loopback ? undefined : key);
    for (const problem of problems) console.error(`  ${journey.name}: ${problem}`);
    if (problems.length > 0) process.exitCode = 1;
    else console.log(`  ${journey.name}: ${recording.exchanges.length} requests, ${writeRecording(recording)}`);
  }
}

import type { Connection, Features } from './adapter.ts';
import { within } from './clock.ts';
import type { CheckHarness } from './harness/check-harness.ts';
import { promptFor } from './harness/script.ts';

/** How long the first prompts of a run may take. */
const PROBE_MS = 120_000;

/** Finds out what an agent can do, by two prompts: one that is only answered, and one that calls the probe. */
export async function probe(connection: Connection, harness: CheckHarness): Promise<Features> {
  const features = await detectModel(connection, harness);
  if (features['model'] !== true) return features;
  if (harness.tool === undefined && connection.offerProbe !== undefined) {
    connection.offerProbe(harness.probe.mcpCommand);
    await detectModel(connection, harness);
  }
  if (harness.tool === undefined) {
    const why = 'the agent offers its model no tool that runs a command';
    return { ...features, tool: why, shell: why, question: why };
  }
  return { ...features, ...(await detectTool(connection, harness)) };
}

async function detectModel(connection: Connection, harness: CheckHarness): Promise<Features> {
  const key = harness.makeKey();
  const turn = (await connection.open()).start(promptFor('reply', key));
  if (await within(PROBE_MS, turn.ended)) {
    const { kind, detail } = await turn.ended;
    if (kind !== 'completed')
      throw new Error(`a plain prompt ended as '${kind}' (${detail}), so nothing can be checked`);
    if (harness.requestsFor(key).length > 0) return { model: true };
  }
  const asked = harness.requestCount === 0 ? 'did not ask' : 'did not pass its prompt to';
  const why = `the agent ${asked} the kit's model at ${harness.provider}; point it there`;
  return { model: why, tool: why, shell: why, question: why };
}

async function detectTool(connection: Connection, harness: CheckHarness): Promise<Features> {
  const key = harness.makeKey();
  connection.answerQuestions('by-check');
  const turn = (await connection.open()).start(promptFor('call', key));
  const asked = turn.waitFor(({ what }) => what === 'question');
  asked.catch(() => {});
  const started = harness.probe.waitForStart(key, 'plain');
  await within(PROBE_MS, Promise.race([asked, started, turn.ended]));
  const question = turn.observations.find((observation) => observation.what === 'question');
  if (question?.what === 'question') question.answer('allow');
  connection.answerQuestions('allow');
  await within(PROBE_MS, Promise.race([started, turn.ended]));
  const hasStarted = harness.probe.hasStarted(key);
  harness.probe.finish(key);
  await within(PROBE_MS, turn.ended);
  const { name, isShell } = harness.tool!;
  const tool = hasStarted || `the agent did not run the probe by its tool '${name}'`;
  return {
    tool,
    shell: isShell ? tool : 'the probe runs in an MCP server, not in a shell of the agent',
    question: question !== undefined || 'the agent runs the probe without asking',
  };
}

import type { Connection, Features } from './adapter.ts';
import { within } from './clock.ts';
import { promptFor } from './stage/script.ts';
import type { CheckHarness } from './stage/stage.ts';

/** How long the first prompts of a run may take. */
const PROBE_MS = 120_000;

/** Finds out what an agent can do, by two prompts: one that is only answered, and one that calls the witness. */
export async function probe(connection: Connection, stage: CheckHarness): Promise<Features> {
  const features = await detectModel(connection, stage);
  if (features['model'] !== true) return features;
  if (stage.tool === undefined && connection.offerWitness !== undefined) {
    connection.offerWitness(stage.witness.mcpCommand);
    await detectModel(connection, stage);
  }
  if (stage.tool === undefined) {
    const why = 'the agent offers its model no tool that runs a command';
    return { ...features, tool: why, shell: why, question: why };
  }
  return { ...features, ...(await detectTool(connection, stage)) };
}

async function detectModel(connection: Connection, stage: CheckHarness): Promise<Features> {
  const key = stage.makeKey();
  const turn = (await connection.open()).start(promptFor('reply', key));
  const isThere = await within(PROBE_MS, turn.ended);
  if (isThere) {
    const { kind, detail } = await turn.ended;
    if (kind !== 'completed')
      throw new Error(`a plain prompt ended as '${kind}' (${detail}), so nothing can be checked`);
    if (stage.requestsFor(key).length > 0) return { model: true };
  }
  const asked = stage.requestCount === 0 ? 'did not ask' : 'did not pass its prompt to';
  const why = `the agent ${asked} the kit's model at ${stage.provider}; point it there`;
  return { model: why, tool: why, shell: why, question: why };
}

async function detectTool(connection: Connection, stage: CheckHarness): Promise<Features> {
  const key = stage.makeKey();
  connection.answerQuestions('by-check');
  const turn = (await connection.open()).start(promptFor('call', key));
  const asked = turn.waitFor(({ what }) => what === 'question');
  asked.catch(() => {});
  const started = stage.witness.waitForStart(key, 'plain');
  await within(PROBE_MS, Promise.race([asked, started, turn.ended]));
  const question = turn.seen.find((seen) => seen.what === 'question');
  if (question?.what === 'question') question.answer('allow');
  connection.answerQuestions('allow');
  const isStarted = await within(
    PROBE_MS,
    Promise.race([started, turn.ended.then(() => Promise.reject(new Error('ended')))]),
  );
  const hasStarted = isStarted && stage.witness.hasStarted(key);
  stage.witness.finish(key);
  await within(PROBE_MS, turn.ended);
  const name = stage.tool?.name ?? '';
  const notStarted = `the agent did not run the witness by its tool '${name}'`;
  const isShell = stage.tool?.isShell === true;
  return {
    tool: hasStarted || notStarted,
    shell:
      (hasStarted && isShell) ||
      (isShell ? notStarted : 'the witness runs in an MCP server, not in a shell of the agent'),
    question: question !== undefined || 'the agent runs the witness without asking',
  };
}

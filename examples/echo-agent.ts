// An agent behind the protocol editors speak, and an editor that changes its mind.
import { PassThrough, Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { serveEcho } from '@whoa/acp';

// An editor starts the agent as a process and owns its standard streams; here both ends are in one program.
const [toAgent, fromAgent] = [new PassThrough(), new PassThrough()];
const connection = serveEcho({ delaySeconds: 0.2, input: toAgent, output: fromAgent });

const { agent } = client({ name: 'tiny-editor' })
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text') {
      console.log(`  agent: ${update.content.text}`);
    }
  })
  .connect(ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(fromAgent) as ReadableStream<Uint8Array>));

const { agentInfo } = await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
const { sessionId } = await agent.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
console.log(`connected to ${agentInfo?.title}`);

const say = (text: string) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });

console.log(`good morning: ${(await say('good morning')).stopReason}`);

const second = say('never mind');
await agent.notify(methods.agent.session.cancel, { sessionId });
console.log(`never mind: ${(await second).stopReason}`);

// The cancel was only for that prompt.
console.log(`good night: ${(await say('good night')).stopReason}`);

await connection.close();

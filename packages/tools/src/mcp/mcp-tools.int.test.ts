import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type CallResult, CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { measureSlowness } from '../../../../test/slowness.ts';
import { openTestServer, SERVER, startHttpServer } from '../../../../test/tools/mcp-server.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import { createMcpTools } from './mcp-tools.ts';

expectNothingLeft();

const MISBEHAVING_SERVER = join(import.meta.dirname, '../../../../test/fixtures/misbehaving-mcp-server.ts');

const isAlive = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0] !== 'Z';
  } catch {
    return false;
  }
};

/** Starts a call; answers its result, cancelled or not, and when its first progress came. */
function start(tool: Tool, token: CancellationToken) {
  const { promise: progressed, resolve } = Promise.withResolvers<void>();
  const runtime = createRuntime({ tools: [tool], hooks: { 'call-update': () => resolve() } });
  const result = runtime.execute([{ id: 'call', tool: tool.name, input: {} }], { token }).then(
    ([only]) => only!,
    (error: { partial: CallResult[] }) => error.partial[0]!,
  );
  return { result, progressed };
}

describe.each(['stdio', 'http'] as const)('%s', (mode) => {
  test('MCP tools become Whoa tools: names, schemas, effects, content for the model and details for people', async () => {
    await using opened = await openTestServer(mode, { trustHints: true });
    const { mcp, tool } = opened;
    expect(mcp.tools.map(({ name, effects, replay }) => `${name} ${effects} ${replay}`)).toEqual([
      'test_echo read safe',
      'test_picture write safe',
      'test_fail execute never',
      'test_pid execute never',
      'test_environment execute never',
      'test_crash execute never',
      'test_count execute never',
      'test_deaf execute never',
    ]);
    expect(tool('echo').inputJsonSchema).toMatchObject({ properties: { say: { type: 'string' } } });
    expect(await callTool(tool('echo'), { say: 'höhe' })).toMatchObject({
      state: 'finished',
      content: 'höhe',
      details: { structuredContent: { said: 'höhe' } },
    });
    expect((await callTool(tool('picture'), {})).content).toEqual([
      { type: 'text', text: 'a picture' },
      { type: 'image', mediaType: 'image/png', data: 'iVBORw==' },
    ]);
    expect(await callTool(tool('fail'), {})).toMatchObject({
      state: 'finished',
      isError: true,
      content: 'it went wrong',
    });
    expect(await callTool(tool('echo'), { say: 5 })).toMatchObject({ isError: true });
    expect(await callTool(tool('echo'), 'nonsense')).toMatchObject({ state: 'not-started' });
  });

  test('every call to an untrusted server needs an approval', async () => {
    await using opened = await openTestServer(mode);
    expect(opened.mcp.tools.every(({ effects, replay }) => effects === 'execute' && replay === 'never')).toBe(true);
  });

  test('a cancel reaches a cooperative tool, which stops; its last progress is kept', async () => {
    await using opened = await openTestServer(mode);
    using token = new CancellationToken();
    const { result, progressed } = start(opened.tool('count'), token);
    await progressed;
    const cancelled = performance.now();
    token.cancel({ kind: 'superseded', message: 'a secret of ours', by: 'somebody' }, { mode: 'now' });
    const ended = await result;
    expect(performance.now() - cancelled).toBeLessThan(1_000 * measureSlowness());
    expect(ended).toMatchObject({ state: 'unknown', details: { total: 1_000_000 } });
    expect(ended.content).toMatch(/\d+ of 1000000\nThe server was told to stop\./);
    await opened.waitForLog('count stopped');
    expect(opened.log()).not.toContain('secret');
    expect(opened.log()).not.toContain('somebody');
    if (mode === 'stdio') expect(opened.log()).toContain('count stopped: superseded');
    expect(await callTool(opened.tool('echo'), { say: 'still here' })).toMatchObject({ content: 'still here' });
  });

  test('a tool that ignores its signal is abandoned within the ladder, reported as unknown, and affects no other call', async () => {
    await using opened = await openTestServer(mode);
    using token = new CancellationToken();
    const { result } = start(opened.tool('deaf'), token);
    await opened.waitForLog('deaf began');
    const other = callTool(opened.tool('echo'), { say: 'meanwhile' });
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const ended = await result;
    expect(ended.state).toBe('unknown');
    expect(ended.content).toContain('It may have taken effect');
    expect(await other).toMatchObject({ state: 'finished', content: 'meanwhile' });
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
    // Its late result reaches no one and breaks nothing.
    if (mode === 'stdio') await opened.waitForLog('deaf went on to its end');
    expect(await callTool(opened.tool('echo'), { say: 'after' })).toMatchObject({ content: 'after' });
  });

  test('cancelled before it starts, nothing is sent', async () => {
    await using opened = await openTestServer(mode);
    using token = new CancellationToken();
    token.cancel({ kind: 'user' });
    expect((await callTool(opened.tool('count'), {}, { token })).state).toBe('not-started');
    expect(opened.log()).toBe('');
  });
});

test('a server that crashes leaves its calls unknown, with its last words, and the next call starts it again', async () => {
  await using opened = await openTestServer('stdio');
  using token = new CancellationToken();
  const { result: counting, progressed } = start(opened.tool('count'), token);
  await progressed;
  const first = Number((await callTool(opened.tool('pid'), {})).content);
  const crashed = await callTool(opened.tool('crash'), {});
  expect(crashed).toMatchObject({ state: 'unknown', isError: true });
  expect(crashed.content).toMatch(/^Outcome unknown: .*It may have taken effect\.$/s);
  expect(crashed.content).toContain('exit code 3; it last said: out of cheese');
  expect((await counting).content).toContain('the next call starts it again');
  const second = Number((await callTool(opened.tool('pid'), {})).content);
  expect(second).not.toBe(first);
  expect(isAlive(first)).toBe(false);
});

test('a server that only crashes is left alone after three times, for a while', async () => {
  const { clock } = createVirtualWorld();
  await using opened = await openTestServer('stdio', { clock });
  for (let round = 0; round < 3; round++) await callTool(opened.tool('crash'), {});
  const refused = await callTool(opened.tool('pid'), {});
  expect(refused).toMatchObject({ state: 'failed' });
  expect(refused.content).toContain('3 times in a row; it is tried again in 30 s');
  await clock.advance(30_000);
  expect((await callTool(opened.tool('pid'), {})).state).toBe('finished');
});

test('a cancel does not wait for a server that is just being started again', async () => {
  await using opened = await openTestServer('stdio');
  await callTool(opened.tool('crash'), {});
  using token = new CancellationToken();
  const { result } = start(opened.tool('pid'), token);
  const patient = callTool(opened.tool('pid'), {});
  await new Promise((resolve) => setImmediate(resolve));
  token.cancel({ kind: 'user' }, { mode: 'now' });
  const first = await Promise.race([result, patient]);
  expect(first.state).toBe('interrupted');
  expect((await patient).state).toBe('finished');
});

test('an HTTP server that went away fails the call, and the next call finds it when it is back', async () => {
  using workspace = createWorkspace({ log: '' });
  const first = await startHttpServer(workspace);
  await using mcp = await createMcpTools({
    name: 'test',
    transport: { type: 'http', url: `http://127.0.0.1:${first.port}/mcp` },
  });
  const echo = mcp.tools.find(({ name }) => name === 'test_echo')!;
  await first.stop();
  const failed = await callTool(echo, { say: 'x' });
  expect(failed).toMatchObject({ state: 'failed' });
  expect(failed.content).toContain('could not be reached');
  const second = await startHttpServer(workspace, { port: first.port });
  expect(await callTool(echo, { say: 'back' })).toMatchObject({ content: 'back' });
  await second.stop();
});

test.each([true, false])('an idempotency key goes to the server only if asked for (%s)', async (sendsEffectKeys) => {
  await using opened = await openTestServer('stdio', { sendsEffectKeys });
  const keys: string[] = [];
  const pid = opened.tool('pid');
  const seen: Tool = {
    ...pid,
    execute: (input, context) => {
      keys.push(context.effectKey);
      return pid.execute(input, context);
    },
  };
  const { content } = await callTool(seen, {});
  const [, key] = (content as string).split(' ');
  expect([key]).toEqual(sendsEffectKeys ? keys : [undefined]);
});

test('a server that does not exist, or sends nothing, is reported in time and leaves nothing', async () => {
  const command = { type: 'stdio', command: '/no/such/server' } as const;
  await expect(createMcpTools({ name: 'gone', transport: command })).rejects.toThrow(
    /'gone' could not be reached \(exit code 127; .*\/no\/such\/server: not found/,
  );
  const mute = { type: 'stdio', command: 'cat', args: ['/dev/zero'] } as const;
  await expect(createMcpTools({ name: 'babbling', transport: mute, connectTimeoutMs: 300 })).rejects.toThrow(
    /babbling/,
  );
  const speechless = { type: 'stdio', command: 'sh', args: ['-c', 'echo no more >&2; exec >&-; sleep 1000'] } as const;
  await expect(createMcpTools({ name: 'speechless', transport: speechless })).rejects.toThrow('it last said: no more');
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as { port: number };
  using token = new CancellationToken();
  const opening = createMcpTools({
    name: 'silent',
    transport: { type: 'http', url: `http://127.0.0.1:${port}/` },
    token,
  });
  await once(silent, 'connection');
  token.cancel({ kind: 'user' }, { mode: 'now' });
  await expect(opening).rejects.toMatchObject({ code: 'CANCELLED' });
  await new Promise((resolve) => silent.close(resolve));
});

test('closing ends a server behind a wrapper that ignores everything, and does not take seconds', async () => {
  const workspace = createWorkspace({ log: '', pid: '' });
  const script = `trap '' TERM HUP INT; '${process.execPath}' '${SERVER}' stdio '${workspace.at('log')}' & echo $! > '${workspace.at('pid')}'; wait; sleep 1000`;
  // A shell gives a background job no input, so the server must be handed it.
  const args = ['-c', script.replace(' & echo', ' <&3 & echo').replace(/^/, 'exec 3<&0; ')];
  const mcp = await createMcpTools({ name: 'wrapped', transport: { type: 'stdio', command: 'sh', args } });
  const server = Number(workspace.read('pid'));
  expect(isAlive(server)).toBe(true);
  const started = performance.now();
  await mcp[Symbol.asyncDispose]();
  expect(performance.now() - started).toBeLessThan(1_500);
  expect(isAlive(server)).toBe(false);
  workspace[Symbol.dispose]();
});

test('a server gets none of our secrets, only the given variables', async () => {
  process.env['SECRET_OF_OURS'] = 'x';
  await using opened = await openTestServer('stdio');
  const { content } = await callTool(opened.tool('environment'), {});
  expect(content).toContain('PATH');
  expect(content).not.toContain('SECRET_OF_OURS');
  delete process.env['SECRET_OF_OURS'];
});

test('calls after closing fail as closed, and closing twice changes nothing', async () => {
  const opened = await openTestServer('stdio');
  const pid = Number((await callTool(opened.tool('pid'), {})).content);
  await opened.mcp[Symbol.asyncDispose]();
  await opened.mcp[Symbol.asyncDispose]();
  expect(isAlive(pid)).toBe(false);
  expect((await callTool(opened.tool('pid'), {})).content).toContain('was closed; create its tools again');
  await opened[Symbol.asyncDispose]();
  expect(existsSync(opened.workspace.path)).toBe(false);
});

const openMisbehaving = (mode: string) =>
  createMcpTools({
    name: 'odd',
    transport: { type: 'stdio', command: process.execPath, args: [MISBEHAVING_SERVER, mode] },
    callTimeoutMs: 60_000,
  });

test.each(['null', 'text', 'other-kind'])(
  'an invalid response (%s) ends its call immediately, as unknown',
  async (mode) => {
    await using odd = await openMisbehaving(mode);
    const result = await callTool(odd.tools[0]!, {});
    expect(result).toMatchObject({ state: 'unknown', isError: true });
    expect(result.content).toMatch(/^Outcome unknown: The MCP server 'odd' sent an invalid response/);
  },
);

test.each([
  ['refuses', 'the licence has expired'],
  ['other-version', "Server's protocol version is not supported: 1.0.0"],
  ['endless', 'it sent a message of more than 64000000 characters'],
])('a server that fails at the beginning (%s) is quoted', async (mode, words) => {
  await expect(openMisbehaving(mode)).rejects.toThrow(`could not be reached (${words})`);
});

test.each([
  ['large-schema', "a tool 'go' with 69 KiB of description and schema; the limit is 64 KiB"],
  ['large-description', "a tool 'go' with 69 KiB of description and schema; the limit is 64 KiB"],
  ['large-list', 'tools with 587 KiB of descriptions and schemas; the limit is 512 KiB'],
  ['many-tools', '501 tools; the limit is 500'],
])('a server whose tools are too large for a model (%s) is rejected', async (mode, words) => {
  await expect(openMisbehaving(mode)).rejects.toThrow(`The MCP server 'odd' has ${words}`);
});

test.each([
  ['removes', "no longer has the tool 'go'"],
  ['changes-input', "changed the input or the hints of its tool 'go'"],
  ['changes-hints', "changed the input or the hints of its tool 'go'"],
])('a tool that is not what it was when the server was opened (%s) is not called', async (mode, words) => {
  await using odd = await openMisbehaving(mode);
  expect(await callTool(odd.tools[0]!, {})).toMatchObject({ state: 'finished', content: 'call 1' });
  for (let again = 0; again < 2; again++) {
    const refused = await callTool(odd.tools[0]!, {});
    expect(refused).toMatchObject({ state: 'failed' });
    expect(refused.content).toContain(`The MCP server 'odd' ${words}, so it was not called`);
  }
  if (mode === 'removes') expect(await callTool(odd.tools[1]!, {})).toMatchObject({ content: 'call 2' });
});

test('a new description does not keep a tool from being called', async () => {
  await using odd = await openMisbehaving('changes-words');
  for (let call = 1; call <= 3; call++)
    expect(await callTool(odd.tools[0]!, {})).toMatchObject({ state: 'finished', content: `call ${call}` });
});

test('a call whose tool list cannot be read was not made: it failed, and nothing is unknown', async () => {
  await using odd = await openMisbehaving('fails-to-list');
  await callTool(odd.tools[0]!, {});
  const failed = await callTool(odd.tools[0]!, {});
  expect(failed).toMatchObject({ state: 'failed' });
  expect(failed.content).toContain('exit code 3');
});

test('an answer that is too long is not read, even if it comes to an end', async () => {
  await using odd = await openMisbehaving('giant');
  const result = await callTool(odd.tools[0]!, {});
  expect(result).toMatchObject({ state: 'unknown', isError: true });
  expect(result.content).toContain('it sent a message of more than 64000000 characters');
});

test('images that are too large or no images are named and left out', async () => {
  await using odd = await openMisbehaving('images');
  expect((await callTool(odd.tools[0]!, {})).content).toEqual([
    { type: 'image', mediaType: 'image/png', data: 'A'.repeat(4_000) },
    { type: 'text', text: '[image/png of 15000000 bytes left out]' },
    { type: 'text', text: '[text/html of 30 bytes left out]' },
  ]);
});

test.each(['application/json', 'text/event-stream'])(
  'an endless answer over HTTP (%s) is cut off',
  async (type) => {
    let sent = 0;
    const server = createHttpServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        if (request.method !== 'POST') return response.writeHead(405).end();
        const { id, method, params } = JSON.parse(body) as {
          id?: number;
          method: string;
          params: { protocolVersion: string };
        };
        const answer = (message: object): unknown =>
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }));
        if (id === undefined) return response.writeHead(202).end();
        if (method === 'server/discover') return answer({ error: { code: -32_601, message: 'no' } });
        const { protocolVersion } = params;
        const serverInfo = { name: 'endless', version: '1' };
        if (method === 'initialize')
          return answer({ result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
        if (method === 'tools/list')
          return answer({ result: { tools: [{ name: 'go', inputSchema: { type: 'object' } }] } });
        response.writeHead(200, { 'content-type': type });
        const more = Buffer.alloc(1 << 20, 'x');
        const go = (): void => {
          while (!response.destroyed && response.write(more)) sent += more.length;
          response.once('drain', go);
        };
        response.write(type === 'text/event-stream' ? 'data: ' : '{"a":"');
        return go();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    await using endless = await createMcpTools({
      name: 'endless',
      transport: { type: 'http', url: `http://127.0.0.1:${port}/` },
    });
    const result = await callTool(endless.tools[0]!, {});
    expect(result).toMatchObject({ state: 'unknown', isError: true });
    expect(result.content).toContain('it sent a message of more than 64000000 bytes');
    expect(sent).toBeLessThan(200_000_000);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  },
  60_000,
);

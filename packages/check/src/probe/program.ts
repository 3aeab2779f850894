// The probe: what an agent's tool starts. Runs as `node program.js PORT KEY ROLE MODE`, connects to the kit, and stays until
// the kit tells it to finish or the kit is gone. Its sockets show which of its processes are alive. Imports nothing but Node,
// because it runs wherever the agent puts it.
import { spawn } from 'node:child_process';
import { connect } from 'node:net';

const [port = '', key = '', role = 'root', mode = 'plain'] = process.argv.slice(2);

if (mode === 'ignore-signals')
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
const socket = connect(Number(port), '127.0.0.1', () => {
  socket.write(`${JSON.stringify({ key, role, mode, pid: process.pid })}\n`);
  if (mode === 'respawn') respawn();
  if (role !== 'root' || mode !== 'tree') return;
  start('child', false);
  // Leaves the process group and the session of the agent.
  start('detached', true);
});
socket.once('data', () => {
  if (role === 'root') console.log(`probe ${key} finished`);
  socket.end('finished\n', () => process.exit(0));
});
// Without the kit there is no one left to tell it to stop.
socket.once('error', () => process.exit(1));
socket.once('close', () => process.exit(1));

function start(as: 'child' | 'detached', isDetached: boolean): void {
  const args = [import.meta.filename, port, key, as, mode];
  const child = spawn(process.execPath, args, { detached: isDetached, stdio: isDetached ? 'ignore' : 'inherit' });
  if (isDetached) child.unref();
}

/** Is replaced by a copy of itself again and again: it stays until its copy has told it that it is there. */
function respawn(): void {
  process.send?.('here', () => process.disconnect());
  const copy = spawn(process.execPath, [import.meta.filename, port, key, role, mode], {
    detached: true,
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  copy.once('message', () => process.exit(0));
}

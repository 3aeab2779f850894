import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const command = new URL('../bin/whoa.js', import.meta.url).href;

/** Starts the command in a Node that reports another version. */
function startOn(version: string): { status: number | null; stderr: string } {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`;
  const args = ['--input-type=module', '-e', `${pretend} await import('${command}');`, '--', '--version'];
  return spawnSync(process.execPath, args, { encoding: 'utf8' });
}

test.each(['14.8.0', '20.20.2', '22.18.0'])('on Node %s the command says which Node it needs', (version) => {
  const { status, stderr } = startOn(version);
  expect(stderr).toContain(`Node ${version} is too old; install Node 22.19.0 or newer`);
  expect(status).toBe(2);
});

test.each(['22.19.0', '23.0.0', '100.1.0'])('Node %s is new enough', (version) => {
  expect(startOn(version).stderr).not.toContain('too old');
});

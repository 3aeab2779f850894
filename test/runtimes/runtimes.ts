// The runtimes for the program. Each runs the bundle and returns its output.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'vite';
import { findChromium } from '../web/chromium.ts';

const run = promisify(execFile);
const here = import.meta.dirname;
const require = createRequire(join(here, 'package.json'));

/** No program may take longer. */
const PLAY_MS = 120_000;

/** Fetches missing runtimes. They come as npm packages; their scripts are not run. */
export async function install(): Promise<void> {
  if (existsSync(join(here, 'node_modules/.package-lock.json'))) return;
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await run('npm', args, { cwd: here, timeout: 280_000 });
}

/** The program and everything it needs, as one module for any runtime. */
export async function bundle(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    resolve: { conditions: ['@whoa/source', 'import', 'default'] },
    build: { write: false, minify: false, target: 'es2024', lib: { entry: join(here, 'program.ts'), formats: ['es'] } },
  });
  const [{ output }] = built as [Extract<typeof built, unknown[]>[number]];
  return output[0].code;
}

export interface Runtime {
  readonly name: string;
  run(code: string, folder: string): Promise<readonly string[]>;
}

const LINES = /^(\[.*\])$/m;

/** A runtime that is a command and reads a file. */
function command(name: string, file: string, args: readonly string[]): Runtime {
  return {
    name,
    async run(code, folder) {
      const path = join(folder, `${name}.mjs`);
      await writeFile(path, `${code}\nconsole.log(JSON.stringify(await run()));\n`);
      const { stdout } = await run(file, [...args, path], { cwd: folder, timeout: PLAY_MS, env: { HOME: folder } });
      return JSON.parse(LINES.exec(stdout)?.[1] ?? 'null') as string[];
    },
  };
}

/** The part of `miniflare` that we use; the packages of this folder are not installed when types are checked. */
interface Worker {
  dispatchFetch(url: string): Promise<Response>;
  dispose(): Promise<void>;
}

/** Cloudflare's runtime, without its optional parts of Node. */
const workerd: Runtime = {
  name: 'workerd',
  async run(code) {
    const { Miniflare } = require('miniflare') as { Miniflare: new (options: object) => Worker };
    const script = `${code}\nexport default { fetch: async () => Response.json(await run()) };\n`;
    const worker = new Miniflare({
      modules: true,
      script,
      compatibilityDate: '2026-07-01',
      handleStructuredLogs: () => {},
    });
    try {
      const response = await worker.dispatchFetch('http://127.0.0.1/');
      return (await response.json()) as string[];
    } finally {
      await worker.dispose();
    }
  },
};

const CHROMIUM_ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** As much of `playwright-core` as is used. */
interface Playwright {
  readonly chromium: { launch(options: object): Promise<Browser> };
}

interface Browser {
  newPage(): Promise<{ evaluate(script: string): Promise<string[]> }>;
  close(): Promise<void>;
}

const chromium: Runtime = {
  name: 'chromium',
  async run(code) {
    const playwright = require('playwright-core') as Playwright;
    const browser = await playwright.chromium.launch({ executablePath: findChromium(), args: CHROMIUM_ARGUMENTS });
    try {
      const page = await browser.newPage();
      // As text: this file's own compiler would otherwise have its hand in it.
      const url = 'URL.createObjectURL(new Blob([source], { type: "text/javascript" }))';
      return await page.evaluate(`(async (source) => (await import(${url})).run())(${JSON.stringify(code)})`);
    } finally {
      await browser.close();
    }
  },
};

function binary(path: string): string {
  return join(here, 'node_modules', path);
}

export const runtimes: readonly Runtime[] = [
  command('bun', binary('@oven/bun-linux-x64/bin/bun'), ['run']),
  command('deno', binary('@deno/linux-x64-glibc/deno'), ['run', '--no-prompt', '--no-remote', '--no-lock']),
  workerd,
  chromium,
];

export const node: Runtime = command('node', process.execPath, ['--no-warnings']);

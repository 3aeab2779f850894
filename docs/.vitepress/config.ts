// The site is made from the pages of this folder, which read well without it too: npm run site
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DefaultTheme, defineConfig } from 'vitepress';

const root = join(import.meta.dirname, '../..');
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { repository: { url: string } };
const address = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link });

const sidebar: DefaultTheme.SidebarItem[] = [
  {
    text: 'Start',
    items: [page('What it is', '/'), page('Agents', '/agents'), page('A stop button for useChat', '/web-chat')],
  },
  {
    text: 'How to',
    items: [
      page('Cancel from another instance', '/how-to/cancel-from-another-instance'),
      page('Stop a command with all it started', '/how-to/kill-the-process-tree'),
      page('Let a newer message win', '/how-to/newer-message-wins'),
      page('Undo on cancel', '/how-to/undo-on-cancel'),
    ],
  },
  {
    text: 'Guides',
    items: [
      page('Write a tool', '/write-a-tool'),
      page('Conversations', '/conversations'),
      page('Keep your own loop', '/keep-your-loop'),
      page('Events and hooks', '/events'),
      page('Processes', '/processes'),
      page('A sandbox for commands', '/sandbox'),
      page('Files', '/files'),
      page('MCP servers', '/mcp'),
      page('Editors', '/editors'),
      page('The command', '/cli'),
      page('Providers', '/providers'),
    ],
  },
  {
    text: 'Concepts',
    items: [
      page('Cancellation', '/cancellation'),
      page('Promises', '/promises'),
      page('Settings and limits', '/settings'),
      page('Simulation and model check', '/simulation'),
    ],
  },
  {
    text: 'Operations',
    items: [
      page('Task stores', '/stores'),
      page('Redis and Valkey', '/redis'),
      page('Postgres', '/postgres'),
      page('Tasks over HTTP', '/http'),
      page('Cancelling by event or checker', '/registry'),
      page('Write a store', '/write-a-store'),
      page('Security', '/security'),
    ],
  },
];

export default defineConfig({
  title: 'Whoa',
  description: 'The TypeScript runtime for AI agents that stop when told.',
  lang: 'en',
  cleanUrls: true,
  lastUpdated: false,
  outDir: join(root, 'dist-site'),
  cacheDir: join(root, '.cache/vitepress'),
  // A link to a page that is not there fails the build. What leads out of this folder is shown by the repository.
  markdown: {
    config: (md) => {
      md.core.ruler.push('links-to-files', ({ tokens, env }) => {
        for (const { children } of tokens) for (const token of children ?? []) linkToFile(token, env as Page);
      });
    },
  },
  themeConfig: {
    sidebar,
    nav: [
      { text: 'Agents', link: '/agents' },
      { text: 'Web chat', link: '/web-chat' },
      { text: 'Promises', link: '/promises' },
    ],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: address }],
    outline: [2, 3],
    editLink: { pattern: `${address}/edit/main/docs/:path`, text: 'Edit this page' },
    footer: { message: 'MIT licensed' },
  },
});

interface Page {
  readonly relativePath: string;
}

interface Link {
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** Turns a link that leads out of this folder into one to the repository. */
function linkToFile(token: Link, { relativePath }: Page): void {
  const href = token.attrGet('href') ?? '';
  const [up, down] = [href.split('../').length - 1, relativePath.split('/').length];
  if (up >= down) token.attrSet('href', `${address}/blob/main/${href.replaceAll('../', '')}`);
}

// The site is made from the pages of this folder, which read well without it too: npm run site
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { sidebar } from './sidebar.ts';

const root = join(import.meta.dirname, '../..');
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { repository: { url: string } };
const address = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

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
      { text: 'Agents', link: '/guides/agents/' },
      { text: 'Web chat', link: '/guides/web-chat/' },
      { text: 'Promises', link: '/promises/' },
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

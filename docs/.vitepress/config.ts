// The site is made from the pages of this folder, which read well without it too: npm run site
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type DefaultTheme, defineConfig } from 'vitepress';
import { sidebar } from './sidebar.ts';

const docs = join(import.meta.dirname, '..');
const root = join(docs, '..');
const API = 'reference/api';
const icon = readFileSync(join(docs, 'public/icon.svg'), 'utf8').trim();
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { repository: { url: string } };
const address = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

export default defineConfig({
  title: 'Whoa',
  description: 'The TypeScript runtime for AI agents that stop when told.',
  lang: 'en',
  // No icon would be asked for at an address that a site below another path does not have.
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
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
    sidebar: sidebar.map(withApi),
    logo: '/icon.svg',
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/how-to/stop-button-for-usechat' },
      { text: 'Operate', link: '/operations/deploy' },
      { text: 'Reference', link: '/reference/cli' },
      { text: 'Trust', link: '/promises/' },
      { text: 'Security', link: '/security' },
    ],
    search: { provider: 'local', options: { _render: renderForSearch } },
    socialLinks: [{ icon: 'github', link: address }],
    outline: [2, 3],
    editLink: { pattern: `${address}/edit/main/docs/:path`, text: 'Edit this page' },
    footer: { message: 'MIT licensed' },
  },
});

/** Adds the pages that scripts/reference/make.ts wrote to the section 'Reference'. */
function withApi(section: DefaultTheme.SidebarItem): DefaultTheme.SidebarItem {
  if (section.text !== 'Reference') return section;
  const items = globSync('*.md', { cwd: join(docs, API) })
    .filter((file) => file !== 'index.md')
    .map((file) => {
      const [heading = ''] = readFileSync(join(docs, API, file), 'utf8').split('\n');
      return { text: heading.replace('# ', ''), link: `/${API}/${file.replace('.md', '')}` };
    })
    .sort((one, other) => one.text.localeCompare(other.text));
  return { ...section, items: [...(section.items ?? []), { text: 'API', link: `/${API}/`, collapsed: true, items }] };
}

/** Leaves the evidence out of the search, except the page in front of it. */
function renderForSearch(text: string, env: Page, md: { render(text: string, env: Page): string }): string {
  const html = md.render(text, env);
  const { relativePath = '' } = env;
  return relativePath.startsWith('evidence/') && relativePath !== 'evidence/index.md' ? '' : html;
}

interface Page {
  /** Not there for the text of a picture. */
  readonly relativePath?: string;
}

interface Link {
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** Turns a link that leads out of this folder, or to data, into one to the repository. */
function linkToFile(token: Link, { relativePath = '' }: Page): void {
  const href = token.attrGet('href') ?? '';
  const [up, down] = [href.split('../').length - 1, relativePath.split('/').length];
  const isData = /\.jsonl?$/.test(href);
  const path = up >= down ? href.replaceAll('../', '') : isData && join('docs', dirname(relativePath), href);
  if (path) token.attrSet('href', `${address}/blob/main/${path}`);
}

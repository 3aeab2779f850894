// The navigation of the site. test/docs.test.ts checks that every page is in it once.
import type { DefaultTheme } from 'vitepress';

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link });

const section = (text: string, items: DefaultTheme.SidebarItem[]): DefaultTheme.SidebarItem => ({ text, items });

const group = (text: string, items: DefaultTheme.SidebarItem[]): DefaultTheme.SidebarItem => ({
  text,
  items,
  collapsed: true,
});

export const sidebar: DefaultTheme.SidebarItem[] = [
  section('Start', [page('What Whoa is', '/')]),
  section('How do I …', [
    page('cancel from another instance?', '/how-to/cancel-from-another-instance'),
    page('kill the whole process tree?', '/how-to/kill-the-process-tree'),
    page('let a newer message win?', '/how-to/newer-message-wins'),
    page('undo on cancel?', '/how-to/undo-on-cancel'),
  ]),
  section('Guides', [
    group('Agents', [page('Overview', '/guides/agents/'), page('Hooks and events', '/guides/agents/hooks')]),
    page('Conversations', '/guides/conversations'),
    group('Web chat', [page('Overview', '/guides/web-chat/')]),
    group('Workers', [
      page('Tasks over HTTP', '/guides/workers/http'),
      page('Cancel by event or checker', '/guides/workers/cancel-tasks'),
      page('Write a store', '/guides/workers/write-a-store'),
    ]),
    page('Editors', '/guides/editors'),
    page('Your own loop', '/guides/your-own-loop'),
    group('Tools', [
      page('Write a tool', '/guides/tools/write-a-tool'),
      page('Processes', '/guides/tools/processes'),
      page('Sandbox', '/guides/tools/sandbox'),
      page('Files', '/guides/tools/files'),
      page('MCP servers', '/guides/tools/mcp'),
    ]),
    page('Providers', '/guides/providers'),
  ]),
  section('Concepts', [page('Cancellation', '/concepts/cancellation'), page('Tasks and stores', '/concepts/tasks')]),
  section('Operations', [page('Redis and Valkey', '/operations/redis'), page('Postgres', '/operations/postgres')]),
  section('Reference', [page('The command', '/reference/cli'), page('Settings and limits', '/reference/settings')]),
  section('Promises', [
    page('The thirteen promises', '/promises/'),
    page('Simulation and model check', '/promises/simulation'),
  ]),
  section('Security', [page('Threat model', '/security')]),
];

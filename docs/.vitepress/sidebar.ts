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
  section('Start', [page('What Whoa is', '/'), page('Get started', '/start')]),
  section('How do I …', [
    page('Stop button for useChat', '/how-to/stop-button-for-usechat'),
    page('Cancel from another instance', '/how-to/cancel-from-another-instance'),
    page('Kill the whole process tree', '/how-to/kill-the-process-tree'),
    page('Newer message wins', '/how-to/newer-message-wins'),
    page('Undo on cancel', '/how-to/undo-on-cancel'),
  ]),
  section('Guides', [
    group('Agents', [
      page('Overview', '/guides/agents/'),
      page('Stream the reply', '/guides/agents/streaming'),
      page('Take a second turn', '/guides/agents/second-turn'),
      page('Ask for approval', '/guides/agents/approval'),
      page('Set budgets', '/guides/agents/budgets'),
      page('Retry a provider', '/guides/agents/retries'),
      page('Compact a history', '/guides/agents/compact'),
      page('Run calls side by side', '/guides/agents/concurrency'),
      page('Use an agent as a tool', '/guides/agents/sub-agents'),
      page("Pass your app's data", '/guides/agents/context'),
      page('Hooks and events', '/guides/agents/hooks'),
    ]),
    page('Conversations', '/guides/conversations'),
    group('Web chat', [
      page('Overview', '/guides/web-chat/'),
      page('Background work', '/guides/web-chat/background'),
      page('AG-UI', '/guides/web-chat/ag-ui'),
    ]),
    group('Workers and tasks', [
      page('Overview', '/guides/workers/'),
      page('Tasks over HTTP', '/guides/workers/http'),
      page('Cancel by event or checker', '/guides/workers/cancel-tasks'),
      page('BullMQ in front', '/guides/workers/bullmq'),
      page('Other engines', '/guides/workers/engines'),
      page('Write a store', '/guides/workers/write-a-store'),
    ]),
    page('Console', '/guides/console'),
    page('Editors', '/guides/editors'),
    page('Your own loop', '/guides/your-own-loop'),
    group('Tools', [
      page('Write a tool', '/guides/tools/write-a-tool'),
      page('Shell and processes', '/guides/tools/processes'),
      page('Sandbox', '/guides/tools/sandbox'),
      page('Files', '/guides/tools/files'),
      page('MCP servers', '/guides/tools/mcp'),
    ]),
    page('Providers', '/guides/providers'),
    page('Check an agent', '/guides/check'),
    page('Check results', '/check-results'),
  ]),
  section('Concepts', [
    page('How a stop works', '/concepts/cancellation'),
    page('How tasks work', '/concepts/tasks'),
    page('Glossary', '/glossary'),
  ]),
  section('Operations', [
    page('Deploy', '/operations/deploy'),
    page('Operate', '/operations/operate'),
    page('Upgrade', '/operations/upgrade'),
    page('Choose a store', '/operations/stores'),
    page('Redis and Valkey', '/operations/redis'),
    page('Postgres', '/operations/postgres'),
    page('Sizing', '/operations/sizing'),
    page('Telemetry', '/operations/telemetry'),
    page('Webhooks', '/operations/webhooks'),
  ]),
  section('Reference', [
    page('The command', '/reference/cli'),
    page('Configuration', '/reference/configuration'),
    page('Settings and limits', '/reference/settings'),
  ]),
  section('Promises', [
    page('The 13 promises', '/promises/'),
    page('Seen elsewhere', '/promises/seen-elsewhere'),
    page('Simulation and model check', '/promises/simulation'),
    page('Ledger of campaigns', '/ledger'),
    page('Compared with other libraries', '/peers'),
  ]),
  section('Security', [page('Threat model', '/security')]),
];

import { defineConfig } from 'vite';

export default defineConfig({
  resolve: { conditions: ['@whoa/source', 'module', 'browser', 'development'] },
  server: { proxy: { '/api': process.env['CHAT_URL'] ?? 'http://127.0.0.1:3000' } },
});

import { defineConfig } from 'vite';

export default defineConfig({
  base: '/console/',
  resolve: { conditions: ['@whoa/source'] },
  server: { proxy: { '/v1': 'http://127.0.0.1:8787' } },
  build: {
    // @whoa/server serves it from there, and ships it.
    outDir: '../server/console',
    emptyOutDir: true,
    target: 'es2023',
    // The content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
